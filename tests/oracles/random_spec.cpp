#include "oracles/random_spec.h"

#include <random>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "oracles/random_images.h"
#include "oracles/random_numbers.h"
#include "oracles/random_optimizer.h"

namespace dpt {
namespace {

class SpecMaker : private RandomNumbers {
 public:
  SpecMaker(uint64_t seed, bool recompute)
      : RandomNumbers(seed), recompute_(recompute), kind_(seed % kKinds), recomputed_(~seed) {}

  std::string make() {
    choose_batches();
    const std::string data = dataset();  // decides what the model begins and ends with
    const Words head = top();
    return fmt::format(
        "data:\n  dataset: {}\n  batch_size: {}\n{}"
        "blocks:\n"
        "  wide: {{parameters: {{width: 8, p: 0.2}},"
        " layers: [{{linear: \"${{width + 1}}\"}}, {{dropout: \"${{p}}\"}}, tanh,"
        " {{linear: \"${{width}}\"}}]}}\n"
        "model:\n  - {}\nloss: {}\noptimizer: {}\n{}"
        "steps: 50\nlog: {{every: 1}}\nsync_batch_norm: true\n",
        data, batch_size_, more_data_, fmt::join(head, "\n  - "), loss_, random_optimizer(*this),
        options());
  }

 private:
  // Some kinds have batches of any size, the others enough samples for batch norm in any mode.
  void choose_batches() {
    accumulate_ = chance(30) ? between(2, 6) : 1;
    batch_size_ = chance(20) ? between(60, 300) : between(1, 45);
    batch_norm_ = kind_ != 1 && kind_ != 6;
    if (batch_norm_) batch_size_ = std::max(batch_size_, least_samples());
  }
  // The fewest samples of a batch with batch norm. A mode may divide the batch into four replicas
  // or chunks, and each of them needs two samples.
  int64_t least_samples() const { return std::max<int64_t>(8, 2 * accumulate_); }

  std::string dataset() {
    int64_t samples = chance(20) ? between(200, 700) : between(5, 150);
    while (batch_norm_ && samples % batch_size_ != 0 && samples % batch_size_ < least_samples())
      ++samples;
    test_samples_ = between(2, 40);
    const std::string sizes = fmt::format("samples: {}, test_samples: {}", samples, test_samples_);
    switch (kind_) {
      case 0:
        return chance(50) ? flat_images(sizes) : images(sizes, 2);
      case 1:
        return numbers(sizes);
      case 2:
        return tokens(sizes);
      case 3:
        return pairs(sizes);
      case 4:
        return sequences(sizes);
      case 5:
        return images(sizes, 3);
      case 6:
        return token_values(sizes);
      case 7:
        loss_of_data_ = "gaussian_nll_loss";
        return numbers(sizes);
      default:
        loss_of_data_ = "triplet_margin_loss";
        return chance(50) ? numbers(sizes) : flat_images(sizes);
    }
  }

  std::string flat_images(const std::string& sizes) {
    classes_ = between(2, 11);
    begin_ = {"flatten"};
    width_ = 3 * between(1, 7);
    more_data_ = "  transforms: [to_tensor]\n";
    return fmt::format("{{synthetic_images: {{{}, shape: [1, 3, {}], classes: {}}}}}", sizes,
                       width_ / 3, classes_);
  }

  std::string numbers(const std::string& sizes) {
    width_ = between(1, 20);
    values_ = between(1, 9);
    return fmt::format("{{random: {{{}, in_features: {}, out_features: {}}}}}", sizes, width_,
                       values_);
  }

  std::string tokens(const std::string& sizes) {
    classes_ = between(3, 12);
    const int64_t length = between(0, 4);
    embed(classes_);
    if (length > 0) begin_.emplace_back("flatten");
    width_ *= std::max<int64_t>(1, length);
    return fmt::format("{{synthetic_tokens: {{{}, length: {}, vocabulary: {}}}}}", sizes, length,
                       classes_);
  }

  std::string token_values(const std::string& sizes) {
    const int64_t vocabulary = between(3, 50);
    values_ = between(1, 6);
    extents_ = 2;
    embed(vocabulary);
    return fmt::format(
        "{{synthetic_tokens: {{{}, length: {}, vocabulary: {}, targets: values, "
        "out_features: {}}}}}",
        sizes, between(1, 4), vocabulary, values_);
  }

  // Samples whose two vectors are all alike, or all unlike, for cosine_embedding_loss.
  std::string pairs(const std::string& sizes) {
    loss_of_data_ = "cosine_embedding_loss";
    classes_ = 1;
    begin_ = {"flatten"};
    width_ = between(1, 20);
    more_data_ = fmt::format("  transforms: [to_tensor]\n  target_transforms: [one_hot{}]\n",
                             maybe(50, ", {standardize: {mean: 2, std: 1}}"));
    return fmt::format("{{synthetic_images: {{{}, shape: [1, 1, {}], classes: 1}}}}", sizes,
                       width_);
  }

  // A label for each token, which has `times` outputs, for ctc_loss.
  std::string sequences(const std::string& sizes) {
    loss_of_data_ = "ctc_loss";
    classes_ = between(3, 12);
    const int64_t length = between(1, 4), times = between(1, 2);
    width_ = between(1, 9);
    begin_ = {fmt::format("embedding: {{num_embeddings: {}, embedding_dim: {}}}", classes_,
                          times * width_),
              fmt::format("reshape: [{}, {}]", times * length, width_)};
    extents_ = 2;
    return fmt::format("{{synthetic_tokens: {{{}, length: {}, vocabulary: {}, targets: next}}}}",
                       sizes, length, classes_);
  }

  // Images or volumes, with classes or values.
  std::string images(const std::string& sizes, int64_t dims) {
    RandomImages made(*this, dims, batch_norm_);
    const int64_t elements = made.elements();
    begin_ = {fmt::format("reshape: [{}]", fmt::join(made.shape(), ", "))};
    for (const std::string& layer : made.layers()) begin_.push_back(layer);
    begin_.emplace_back("flatten");
    width_ = made.elements();
    if (chance(50)) {
      classes_ = between(2, 11);
      more_data_ = "  transforms: [to_tensor]\n";
      return fmt::format("{{synthetic_images: {{{}, shape: [1, 1, {}], classes: {}}}}}", sizes,
                         elements, classes_);
    }
    values_ = between(1, 9);
    return fmt::format("{{random: {{{}, in_features: {}, out_features: {}}}}}", sizes, elements,
                       values_);
  }

  void embed(int64_t vocabulary) {
    width_ = between(1, 9);
    begin_.push_back(fmt::format("embedding: {{num_embeddings: {}, embedding_dim: {}{}}}",
                                 vocabulary, width_, maybe(30, ", padding_idx: 1")));
  }

  // The model's entries, and the loss that goes with its end.
  Words top() {
    Words out = begin_;
    for (int64_t n = between(1, 5); n > 0; --n) {
      const std::string here = fmt::format("n{}", n);
      switch (between(0, 4)) {
        case 0: {  // two ways from one place, and together again
          const bool sum = chance(50);
          const int64_t a = width(), b = sum ? a : width();
          out.push_back(fmt::format("{{identity: {{}}, name: {}}}", here));
          out.push_back(fmt::format("{{linear: {}, name: {}a}}", a, here));
          out.push_back(fmt::format("{{linear: {}, name: {}b, from: {}}}", b, here, here));
          out.push_back(
              sum ? fmt::format("{{{}: {{}}, from: [{}a, {}b]}}", one_of({"add", "multiply"}), here,
                                here)
                  : fmt::format("{{concat: {{dim: {}}}, from: [{}a, {}b]}}", extents_, here, here));
          width_ = sum ? a : a + b;
          break;
        }
        case 1:
          width_ = between(1, 20);
          out.push_back(fmt::format("{{wide: {{width: {}, p: {}}}, repeat: {}}}", width_,
                                    part(0, 50), between(1, 3)));
          break;
        case 2: {
          const int64_t in = width_;
          Words body = some();
          const bool shortcut = chance(40);
          if (!shortcut) body.push_back(linear(in));
          for (std::string& entry : body) entry = maybe_again(fmt::format("{{{}}}", entry));
          out.push_back(
              fmt::format("residual: {{body: [{}]{}}}", fmt::join(body, ", "),
                          shortcut ? fmt::format(", shortcut: [{{linear: {}}}]", width_) : ""));
          break;
        }
        default:
          for (const std::string& layer : some()) out.push_back(layer);
      }
    }
    finish(out);
    for (std::string& entry : out) entry = maybe_again(entry);
    return out;
  }

  // An entry of a model, some of which are computed again. Numbers of its own decide, so that the
  // rest of the spec is the same without.
  std::string maybe_again(const std::string& entry) {
    if (recomputed_() % 3 != 0 || !recompute_) return entry;
    const bool map = entry.find(':') != std::string::npos, braces = entry.starts_with("{");
    return fmt::format("{{{}{}, checkpoint: true}}",
                       braces ? entry.substr(1, entry.size() - 2) : entry, map ? "" : ": {}");
  }

  int64_t width() {
    if (chance(10)) return between(60, 300);
    return chance(50) ? between(1, 40) : 8 * between(1, 4) + between(-1, 1);
  }
  std::string linear(int64_t out) {
    width_ = out;
    return fmt::format("linear: {{out_features: {}, bias: {}}}", out, chance(80));
  }

  Words some() {
    Words out;
    for (int64_t n = between(1, 4); n > 0; --n) switch (between(0, 4)) {
        case 0:
          out.push_back(linear(width()));
          break;
        case 1:
          out.push_back(fmt::format("dropout: {}", part(0, 70)));
          break;
        case 2:
          out.push_back(fmt::format("layer_norm: {{elementwise_affine: {}, bias: {}}}", chance(70),
                                    chance(70)));
          break;
        case 3:
          if (!batch_norm_) {
            out.emplace_back("rms_norm: {}");
            break;
          }
          out.push_back(
              fmt::format("batch_norm1d: {{affine: {}, track_running_stats: {}, momentum: {}}}",
                          chance(70), chance(70), chance(80) ? "0.2" : "null"));
          break;
        default:
          out.push_back(one_of({"relu: {}",
                                "leaky_relu: 0.1",
                                "elu: 0.7",
                                "selu: {}",
                                "gelu: {}",
                                "gelu: tanh",
                                "silu: {}",
                                "sigmoid: {}",
                                "tanh: {}",
                                "softplus: 2",
                                "hardswish: {}",
                                "mish: {}",
                                "hardtanh: {max_val: 2}",
                                "hardsigmoid: {}",
                                "celu: 0.5",
                                "softsign: {}",
                                "logsigmoid: {}",
                                "hardshrink: 0.1",
                                "softshrink: 0.1",
                                "tanhshrink: {}",
                                "threshold: {threshold: -1, value: 0.5}",
                                "rms_norm: {}",
                                "identity: {}",
                                fmt::format("softmax: {}", extents_),
                                fmt::format("log_softmax: {}", extents_)}));
      }
    return out;
  }

  // Losses of several vectors of each sample, or of positions.
  bool finish_vectors(Words& model, const std::string& reduction) {
    const auto vectors = [&](int64_t count) {
      const int64_t n = between(1, 9);
      model.push_back(linear(count * n));
      model.push_back(fmt::format("reshape: [{}, {}]", count, n));
    };
    if (loss_of_data_ == "ctc_loss") {
      model.push_back(linear(classes_ + 1));
      loss_ =
          fmt::format("{{ctc_loss: {{blank: {}, zero_infinity: true, {}}}}}", classes_, reduction);
    } else if (loss_of_data_ == "cosine_embedding_loss") {
      vectors(2);
      loss_ = "{cosine_embedding_loss: {" + reduction + maybe(50, ", margin: 0.2") + "}}";
    } else if (loss_of_data_ == "triplet_margin_loss") {
      vectors(3);
      loss_ = "{triplet_margin_loss: {" + reduction + maybe(50, ", p: 1") +
              maybe(50, ", swap: true") + "}}";
    } else if (loss_of_data_ == "gaussian_nll_loss") {
      model.push_back(linear(2 * values_));
      loss_ = "{gaussian_nll_loss: {log_variance: true, " + reduction + maybe(50, ", full: true") +
              "}}";
    } else {
      return false;
    }
    return true;
  }

  void finish(Words& model) {
    const std::string reduction = "reduction: " + one_of({"mean", "mean", "sum"});
    if (finish_vectors(model, reduction)) return;
    if (classes_ == 0 || chance(30)) {
      const int64_t n = classes_ > 0 ? classes_ : values_;
      model.push_back(linear(n));
      if (classes_ > 0) more_data_ += "  target_transforms: [one_hot]\n";
      switch (between(0, classes_ > 0 ? 13 : 3)) {  // the last ones want targets of 0 and 1
        case 0:
          loss_ = "mse_loss: {" + reduction + "}";
          break;
        case 1:
          loss_ = "l1_loss: {" + reduction + "}";
          break;
        case 2:
          loss_ = "smooth_l1_loss: {beta: 0.4, " + reduction + "}";
          break;
        case 3:
          loss_ = "huber_loss: {delta: 0.3, " + reduction + "}";
          break;
        case 4:
          model.emplace_back("sigmoid");
          loss_ = "bce_loss: {" + reduction + maybe(50, ", weight: " + list(n)) + "}";
          break;
        case 5:
          loss_ = "bce_with_logits_loss: {" + reduction + maybe(40, ", weight: " + list(n)) +
                  maybe(50, ", pos_weight: " + list(n)) + "}";
          break;
        case 6:
          loss_ = "soft_margin_loss: {" + reduction + "}";
          break;
        case 7:
          loss_ = "poisson_nll_loss: {" + reduction + "}";
          break;
        case 8:
          loss_ = "sigmoid_focal_loss: {" + reduction + maybe(50, ", alpha: -1, gamma: 1.5") + "}";
          break;
        case 9:
          loss_ = "multilabel_soft_margin_loss: {" + reduction + maybe(50, ", weight: " + list(n)) +
                  "}";
          break;
        case 10:
          loss_ = "hinge_embedding_loss: {" + reduction + maybe(50, ", margin: 0.5") + "}";
          break;
        case 11:
          loss_ = "sigmoid_dice_loss: {" + reduction + "}";
          break;
        case 12:
          model.push_back(linear(2 * n));
          model.push_back(fmt::format("reshape: [2, {}]", n));
          loss_ = "margin_ranking_loss: {" + reduction + maybe(50, ", margin: 0.5") + "}";
          break;
        default:
          model.emplace_back("log_softmax");
          loss_ = "kl_div: {reduction: " + one_of({"batchmean", "mean", "sum"}) + "}";
      }
    } else if (chance(15)) {
      model.push_back(linear(classes_));
      loss_ = chance(50) ? "dice_loss: {" + reduction + maybe(50, ", smooth: 1") + "}"
                         : "focal_loss: {" + reduction + maybe(50, ", gamma: 0.5") +
                               maybe(50, ", weight: " + list(classes_)) +
                               maybe(50, ", ignore_index: 1") + "}";
    } else if (chance(15)) {
      model.push_back(linear(classes_));
      loss_ = "multi_margin_loss: {" + reduction + maybe(50, ", p: 2") +
              maybe(50, ", weight: " + list(classes_)) + "}";
    } else {
      model.push_back(linear(classes_));
      const bool nll = chance(40);
      if (nll) model.emplace_back("log_softmax");
      loss_ = (nll ? "nll_loss: {" : "cross_entropy: {") + reduction +
              maybe(50, ", weight: " + list(classes_)) + maybe(50, ", ignore_index: 1") +
              (nll ? "" : maybe(40, ", label_smoothing: 0.1")) + "}";
    }
    loss_ = "{" + loss_ + "}";
  }

  // None of one sample, of which batch norm without running statistics can't take a variance.
  int64_t test_batch() {
    int64_t size = between(2, 25);
    while (test_samples_ % size == 1) ++size;
    return size;
  }

  std::string options() {
    std::string out;
    if (accumulate_ > 1) out += fmt::format("accumulate: {}\n", accumulate_);
    if (chance(30))
      out += fmt::format("clip_grad_norm: {{max_norm: {}, norm_type: {}}}\n", part(5, 100),
                         one_of({"1", "2", "2", "3", ".inf"}));
    if (chance(20)) out += fmt::format("clip_grad_value: {}\n", part(1, 20));
    if (chance(40))
      out += "schedule: " +
             one_of({"{exponential: 0.97, interval: step}", "{step: {step_size: 3}}",
                     "{cosine_annealing: {}, warmup: 2, interval: step}",
                     "{reduce_on_plateau: {patience: 0, factor: 0.5}}"}) +
             "\n";
    if (chance(40)) out += fmt::format("evaluate: {{batch_size: {}}}\n", test_batch());
    out += fmt::format("seed: {}\n", between(0, 1000));
    // Scales that fall and grow within the run, and skip a few steps.
    if (chance(40))
      out +=
          "precision: " +
          one_of({"{bf16: {emulate: true}}", "{bf16: {emulate: true, level: o2}}",
                  "{bf16: {emulate: true, level: o3, lists: cuda}}",
                  "{fp16: {emulate: true, init_scale: 4194304, growth_interval: 7}}",
                  "{fp16: {emulate: true, level: o2, init_scale: 65536, growth_interval: 20}}"}) +
          "\n";
    return out;
  }

  static constexpr uint64_t kKinds = 9;
  bool recompute_;
  uint64_t kind_;  // of data, in turn, so that few seeds have all
  std::mt19937_64 recomputed_;
  Words begin_;
  std::string more_data_, loss_;
  std::string loss_of_data_;  // the loss that goes with the data; empty: any that fits
  int64_t accumulate_ = 1, batch_size_ = 1;
  bool batch_norm_ = true;
  int64_t test_samples_ = 2;
  int64_t width_ = 1, extents_ = 1;   // of what the last layer gives: its last extent, how many
  int64_t classes_ = 0, values_ = 0;  // what the data set's targets are: one of the two
};

}  // namespace

std::string random_spec(uint64_t seed, bool recompute) { return SpecMaker(seed, recompute).make(); }

RandomPipeline random_pipeline(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string keys = fmt::format("stages: 2, chunks: {}", 1 + random() % 3);
  if (random() % 2 == 0) keys += ", schedule: gpipe";
  return {keys,
          fmt::format("{}, checkpoint: {}", keys, random() % 3 == 0 ? "except_last" : "always")};
}

}  // namespace dpt
