#include "oracles/random_spec.h"

#include <random>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dpt {
namespace {

using Words = std::vector<std::string>;

class SpecMaker {
 public:
  SpecMaker(uint64_t seed, bool recompute)
      : recompute_(recompute), random_(seed), recomputed_(~seed) {}

  std::string make() {
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
        data, chance(20) ? between(60, 300) : between(1, 45), more_data_, fmt::join(head, "\n  - "),
        loss_, optimizer(), options());
  }

 private:
  // Not std's distributions: each library has its own.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::string one_of(const Words& words) {
    return words[static_cast<size_t>(between(0, std::ssize(words) - 1))];
  }
  std::string maybe(int percent, const std::string& text) { return chance(percent) ? text : ""; }
  double part(int64_t low, int64_t high) { return static_cast<double>(between(low, high)) / 100; }
  std::string numbers(int64_t count) {
    std::vector<double> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(part(20, 300));
    return fmt::format("[{}]", fmt::join(out, ", "));
  }

  std::string dataset() {
    const int64_t samples = chance(20) ? between(200, 700) : between(5, 150);
    test_samples_ = between(2, 40);
    const std::string sizes = fmt::format("samples: {}, test_samples: {}", samples, test_samples_);
    switch (between(0, 3)) {
      case 0:
        classes_ = between(2, 11);
        begin_ = {"flatten"};
        width_ = 3 * between(1, 7);
        more_data_ = "  transforms: [to_tensor]\n";
        return fmt::format("{{synthetic_images: {{{}, shape: [1, 3, {}], classes: {}}}}}", sizes,
                           width_ / 3, classes_);
      case 1:
        width_ = between(1, 20);
        values_ = between(1, 9);
        return fmt::format("{{random: {{{}, in_features: {}, out_features: {}}}}}", sizes, width_,
                           values_);
      case 2: {
        classes_ = between(3, 12);
        const int64_t length = between(0, 4);
        embed(classes_);
        if (length > 0) begin_.emplace_back("flatten");
        width_ *= std::max<int64_t>(1, length);
        return fmt::format("{{synthetic_tokens: {{{}, length: {}, vocabulary: {}}}}}", sizes,
                           length, classes_);
      }
      default: {
        const int64_t vocabulary = between(3, 50);
        values_ = between(1, 6);
        extents_ = 2;
        embed(vocabulary);
        return fmt::format(
            "{{synthetic_tokens: {{{}, length: {}, vocabulary: {}, targets: values, "
            "out_features: {}}}}}",
            sizes, between(1, 4), vocabulary, values_);
      }
    }
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
          out.push_back(
              fmt::format("batch_norm1d: {{affine: {}, track_running_stats: {}, momentum: {}}}",
                          chance(70), chance(70), chance(80) ? "0.2" : "null"));
          break;
        default:
          out.push_back(one_of(
              {"relu: {}", "leaky_relu: 0.1", "elu: 0.7", "selu: {}", "gelu: {}", "gelu: tanh",
               "silu: {}", "sigmoid: {}", "tanh: {}", "softplus: 2", "hardswish: {}", "mish: {}",
               "hardtanh: {max_val: 2}", "hardsigmoid: {}", "rms_norm: {}", "identity: {}",
               fmt::format("softmax: {}", extents_), fmt::format("log_softmax: {}", extents_)}));
      }
    return out;
  }

  void finish(Words& model) {
    const std::string reduction = "reduction: " + one_of({"mean", "mean", "sum"});
    if (classes_ == 0 || chance(30)) {
      const int64_t n = classes_ > 0 ? classes_ : values_;
      model.push_back(linear(n));
      if (classes_ > 0) more_data_ += "  target_transforms: [one_hot]\n";
      switch (between(0, classes_ > 0 ? 8 : 3)) {  // the last ones want targets of 0 and 1
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
          loss_ = "bce_loss: {" + reduction + maybe(50, ", weight: " + numbers(n)) + "}";
          break;
        case 5:
          loss_ = "bce_with_logits_loss: {" + reduction + maybe(40, ", weight: " + numbers(n)) +
                  maybe(50, ", pos_weight: " + numbers(n)) + "}";
          break;
        case 6:
          loss_ = "soft_margin_loss: {" + reduction + "}";
          break;
        case 7:
          loss_ = "poisson_nll_loss: {" + reduction + "}";
          break;
        default:
          model.emplace_back("log_softmax");
          loss_ = "kl_div: {reduction: " + one_of({"batchmean", "mean", "sum"}) + "}";
      }
    } else if (chance(15)) {
      model.push_back(linear(classes_));
      loss_ = "multi_margin_loss: {" + reduction + maybe(50, ", p: 2") +
              maybe(50, ", weight: " + numbers(classes_)) + "}";
    } else {
      model.push_back(linear(classes_));
      const bool nll = chance(40);
      if (nll) model.emplace_back("log_softmax");
      loss_ = (nll ? "nll_loss: {" : "cross_entropy: {") + reduction +
              maybe(50, ", weight: " + numbers(classes_)) + maybe(50, ", ignore_index: 1") +
              (nll ? "" : maybe(40, ", label_smoothing: 0.1")) + "}";
    }
    loss_ = "{" + loss_ + "}";
  }

  // Rates at which a sum over a batch does not diverge, either.
  std::string optimizer() {
    const std::string decay = maybe(40, ", weight_decay: 0.01");
    switch (between(0, 9)) {
      case 0:
        return chance(50) ? "{sgd: {lr: 0.001, momentum: 0.9, nesterov: true" + decay + "}}"
                          : fmt::format("{{sgd: {{lr: 0.002, momentum: {}, dampening: 0.1{}}}}}",
                                        part(0, 90), decay);
      case 1:
        return fmt::format("{{adam: {{lr: 0.01, amsgrad: {}{}}}}}", chance(30), decay);
      case 2:
        return fmt::format("{{adam_w: {{lr: 0.01, betas: [0.8, 0.99]{}}}}}", decay);
      case 3:
        return fmt::format("{{rms_prop: {{lr: 0.002, centered: {}, momentum: {}{}}}}}", chance(40),
                           part(0, 50), decay);
      case 4:
        return "{adagrad: {lr: 0.02, lr_decay: 0.01" + decay + "}}";
      case 5:
        return "{adamax: {lr: 0.01" + decay + "}}";
      case 6:
        return fmt::format("{{n_adam: {{lr: 0.01, decoupled_weight_decay: {}{}}}}}", chance(50),
                           decay);
      case 7:
        return fmt::format("{{r_adam: {{lr: 0.01, decoupled_weight_decay: {}{}}}}}", chance(50),
                           decay);
      case 8:
        return "{rprop: {lr: 0.001, step_sizes: [1e-5, 0.01]}}";
      default:
        return "{adadelta: {lr: 1" + decay + "}}";
    }
  }

  // None of one sample, of which batch norm without running statistics can't take a variance.
  int64_t test_batch() {
    int64_t size = between(2, 25);
    while (test_samples_ % size == 1) ++size;
    return size;
  }

  std::string options() {
    std::string out;
    if (chance(40)) out += fmt::format("accumulate: {}\n", between(2, 6));
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

  bool recompute_;
  std::mt19937_64 random_, recomputed_;
  Words begin_;
  std::string more_data_, loss_;
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
