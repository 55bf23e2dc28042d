#include "cli/init_spec.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/image_shape.h"
#include "base/one_line.h"
#include "data/tables.h"

namespace dpt {
namespace {

// Lines of YAML with comments beside them.
class SpecText {
 public:
  // The text may have names and values of the data: a line break in them must not end the comment.
  void comment(std::string_view text) { out_ += fmt::format("# {}\n", one_line(text)); }
  void empty() { out_ += '\n'; }
  // A line that is too long for a comment beside it has its comment above.
  void line(const std::string& yaml, std::string_view comment = "") {
    constexpr size_t kColumn = 38, kWidth = 100;
    const size_t indent = yaml.find_first_not_of(' ');
    if (comment.empty())
      out_ += yaml + "\n";
    else if (std::max(yaml.size(), kColumn) + comment.size() + 4 <= kWidth)
      out_ += fmt::format("{:<{}}  # {}\n", yaml, kColumn, comment);
    else
      out_ += fmt::format("{}# {}\n{}\n", std::string(indent, ' '), comment, yaml);
  }
  std::string text() && { return std::move(out_); }

 private:
  std::string out_;
};

// Relative to the spec's folder if that is short, so that both can be moved together.
std::string path_from(const std::string& folder, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path to = fs::absolute(path).lexically_normal();
  const std::string relative =
      to.lexically_relative(fs::absolute(folder).lexically_normal()).string();
  const bool far = relative.empty() || relative.starts_with("../../..");
  return yaml_scalar(far ? to.string() : relative);
}

// "0.5", or "[0.49, 0.48, 0.45]": the shortest texts that give the same float32.
std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> out;
  for (const double v : values) out.push_back(fmt::format("{}", static_cast<float>(v)));
  const auto same = [&](const std::string& v) { return v == out[0]; };
  if (std::ranges::all_of(out, same)) return out[0];
  return fmt::format("[{}]", fmt::join(out, ", "));
}

// Whether each row of `classes` numbers has a single 1 and zeros.
bool marks_one(std::span<const int32_t> all, int64_t classes) {
  const auto size = static_cast<size_t>(classes);
  if (size < 2 || all.empty()) return false;
  for (; !all.empty(); all = all.subspan(size)) {
    const std::span<const int32_t> row = all.first(size);
    if (std::ranges::count(row, 1) != 1 || std::ranges::count(row, 0) + 1 != std::ssize(row))
      return false;
  }
  return true;
}

// Whether there is a class for each pixel, voxel or position of samples [C, size] or [size] of
// numbers, where [size] is the shape of a target.
bool is_dense(const Dataset& d) {
  const Shape sample = d.inputs.sample(), target = d.targets.sample();
  if (d.classes == 0 || target.rank() < 1 || target.rank() > 3 || d.inputs.desc.dtype == DType::i32)
    return false;
  return sample == target || (sample.rank() == target.rank() + 1 && sample.tail(1) == target);
}

// "16, 16"
std::string extents_of(const Shape& shape) {
  return fmt::format("{}", fmt::join(shape.extents(), ", "));
}

class Writer {
 public:
  Writer(const DataGuess& guess, const std::string& folder)
      : g_(guess), d_(guess.train), folder_(folder), sample_(d_.inputs.sample()) {}

  std::string text(const std::string& schema) {
    t_.comment("yaml-language-server: $schema=" + schema);
    t_.comment(
        "Written by `dptrain init` as a starting point. `dptrain explain KEY` explains a key.");
    for (const std::string& note : g_.notes) t_.comment(note);
    t_.line("version: 1");
    t_.line("name: " + yaml_scalar(g_.name), "runs are written to runs/NAME/1, 2, ...");
    t_.line("seed: 0", "for the initial weights and the order of samples");
    t_.empty();
    data();
    t_.empty();
    model();
    t_.empty();
    training();
    return std::move(t_).text();
  }

 private:
  // A token for each position of a sequence.
  bool predicts_next() const {
    return tokens() && d_.classes > 0 && d_.targets.sample() == sample_;
  }
  // A class for each pixel, voxel or position.
  bool dense() const { return is_dense(d_); }
  // The targets are 1 and -1.
  bool signs() const {
    if (d_.classes > 0 || !d_.targets.data) return false;
    const std::span<const float> all = values_of<float>(d_.targets);
    return std::ranges::all_of(all, [](float t) { return t == 1 || t == -1; });
  }
  // The targets are several columns of 0 and 1, each for a label that a sample may have.
  bool labels() const {
    if (d_.classes > 0 || !d_.targets.data || d_.targets.sample().elements() < 2) return false;
    const std::span<const float> all = values_of<float>(d_.targets);
    return std::ranges::all_of(all, [](float t) { return t == 0 || t == 1; });
  }
  bool tokens() const { return d_.inputs.desc.dtype == DType::i32; }
  // Images [H, W] without a dimension of channels.
  bool gray_arrays() const { return !tokens() && like_gray_image(sample_); }
  bool images() const {
    constexpr int64_t kSmallest = 8;
    if (gray_arrays()) return true;
    return !tokens() && sample_.rank() == 3 && std::min(sample_[1], sample_[2]) >= kSmallest &&
           sample_[0] <= 16;
  }

  bool volumes() const {
    return !tokens() && sample_.rank() == 4 && sample_[0] <= 16 && sample_.tail(1).elements() > 0;
  }

  void data() {
    t_.line("data:");
    if (g_.settings.empty()) {
      t_.line("  dataset: " + g_.type, "`dptrain explain " + g_.type + "` lists its settings");
    } else {
      t_.line("  dataset:");
      t_.line("    " + g_.type + ":");
    }
    for (const DataGuess::Setting& s : g_.settings)
      t_.line(fmt::format("      {}: {}", s.key, s.is_path ? path_from(folder_, s.value) : s.value),
              s.comment);
    if (splits_off_validation(g_))
      t_.line("  validation: 0.1",
              "a random tenth is not trained on, but evaluated after each epoch");
    if (!g_.validation.empty()) validation_set();
    transforms();
    t_.line(fmt::format("  batch_size: {}", batch_size()), "samples per step");
    t_.line("  shuffle: true", "a new random order in each epoch");
  }

  const DatasetType& type() const {
    return *std::ranges::find(dataset_table(), g_.type, &DatasetType::name);
  }

  // The same settings, but for the paths, and those that both sets share anyway.
  void validation_set() {
    t_.line("  validation:", "evaluated after each epoch");
    t_.line("    " + g_.type + ":");
    for (const DataGuess::Setting& v : g_.validation)
      t_.line(fmt::format("      {}: {}", v.key, path_from(folder_, v.value)));
    const std::vector<KeyDoc> keys = type().describe();
    for (const DataGuess::Setting& s : g_.settings)
      if (!s.is_path && !std::ranges::find(keys, s.key, &KeyDoc::name)->shared)
        t_.line(fmt::format("      {}: {}", s.key, s.value));
  }

  void transforms() {
    const bool bytes = d_.inputs.desc.dtype == DType::u8;
    if (bytes || !g_.mean.empty()) {
      t_.line("  transforms:");
      if (bytes) t_.line("    - to_tensor", "bytes 0..255 become 0..1");
      if (!g_.mean.empty())
        scaling("    - normalize", g_.mean, g_.std,
                (sample_.rank() == 1 ? "each column becomes about -1..1" : "(x - mean) / std") +
                    (g_.measured < d_.size() ? fmt::format("; measured on {} samples", g_.measured)
                                             : ""));
    }
    if (images() && type().image_reader != nullptr)
      t_.line("    # - random_horizontal_flip",
              "mirrors images; remove it if that changes the class");
    if (g_.target_mean.empty() || signs() || labels()) return;
    t_.line("  target_transforms:");
    scaling("    - standardize", g_.target_mean, g_.target_std,
            "outputs and loss are in units of std");
  }

  // Lists of several numbers have lines of their own.
  void scaling(const std::string& name, const std::vector<double>& mean,
               const std::vector<double>& std, std::string_view comment) {
    const std::string short_form =
        fmt::format("{}: {{mean: {}, std: {}}}", name, numbers(mean), numbers(std));
    constexpr size_t kShort = 70;
    if (short_form.size() <= kShort) {
      t_.line(short_form, comment);
      return;
    }
    t_.line(name + ":", comment);
    t_.line("        mean: " + numbers(mean));
    t_.line("        std: " + numbers(std));
  }

  // About a sixteenth of a small data set, so that an epoch has steps enough.
  int64_t batch_size() const {
    constexpr int64_t kTokens = 32, kMost = 128, kFewest = 8;
    const int64_t most = std::clamp(d_.size() / 16, kFewest, tokens() ? kTokens : kMost);
    int64_t batch = kFewest;
    while (batch * 2 <= most) batch *= 2;
    return std::min(batch, d_.size());
  }

  void model() {
    t_.line("model:",
            fmt::format("one sample is {} {}", sample_.str(), name_of(d_.inputs.desc.dtype)));
    if (dense())
      dense_layers();
    else if (tokens())
      token_layers();
    else if (images())
      image_layers();
    else if (volumes())
      volume_layers();
    else
      number_layers();
  }

  int64_t outputs() const { return d_.classes > 0 ? d_.classes : d_.targets.sample().elements(); }
  std::string outputs_text() const {
    return d_.classes > 0 ? "one score per class"
           : labels()     ? "one score per label"
                          : "the predicted values";
  }

  void number_layers() {
    if (sample_.rank() > 1) t_.line("  - flatten", "all numbers of a sample as one vector");
    t_.line("  - linear: 64", "64 sums of all inputs, with learned weights");
    t_.line("  - relu", "negative numbers become 0");
    t_.line("  - linear: 64");
    t_.line("  - relu");
    t_.line(fmt::format("  - linear: {}", outputs()), outputs_text());
  }

  void add_channel() {
    t_.line("  - reshape: [1, " + extents_of(sample_) + "]", "one channel in front");
  }

  // Convolutions that keep the size; dilated ones see more of the surroundings.
  void dense_layers() {
    const Shape target = d_.targets.sample();
    const int rank = target.rank();
    if (sample_ == target) add_channel();
    constexpr int64_t kChannels[] = {16, 32, 32}, kDilations[] = {1, 2, 4};
    for (int i = 0; i < 3; ++i) {
      const int64_t d = kDilations[i];
      t_.line(fmt::format("  - conv{}d: {{out_channels: {}, kernel_size: 3, padding: {}{}}}", rank,
                          kChannels[i], d, d > 1 ? fmt::format(", dilation: {}", d) : ""),
              i == 0   ? "keeps the size"
              : i == 1 ? "sees more of the surroundings"
                       : "");
      t_.line(fmt::format("  - batch_norm{}d", rank),
              i == 0 ? "keeps each channel's values in a standard range" : "");
      t_.line("  - relu", i == 0 ? "negative numbers become 0" : "");
    }
    t_.line(fmt::format("  - conv{}d: {{out_channels: {}, kernel_size: 1}}", rank, d_.classes),
            rank == 2   ? "a score per class for each pixel"
            : rank == 3 ? "a score per class for each voxel"
                        : "a score per class for each position");
  }

  // Convolutions, each followed by half the resolution, while there is enough of it.
  void image_layers() {
    if (gray_arrays()) add_channel();
    const int rank = sample_.rank();
    int64_t side = std::min(sample_[rank - 2], sample_[rank - 1]), channels = 16;
    constexpr int64_t kLarge = 128, kSmallest = 8, kMostChannels = 128;
    bool first = true;
    for (; side >= kSmallest && channels <= kMostChannels; channels *= 2, side /= 2) {
      const bool strides = first && side >= kLarge;
      if (strides) side /= 2;
      t_.line(fmt::format("  - conv2d: {{out_channels: {}, kernel_size: 3, padding: 1{}}}",
                          channels, strides ? ", stride: 2" : ""));
      t_.line("  - batch_norm2d", first ? "keeps each channel's values in a standard range" : "");
      t_.line("  - relu", first ? "negative numbers become 0" : "");
      t_.line("  - max_pool2d: 2", first ? "halves height and width" : "");
      first = false;
    }
    if (side >= kSmallest) t_.line("  - adaptive_avg_pool2d: 4", "4 x 4 averages of each channel");
    t_.line("  - flatten");
    t_.line("  - linear: 128");
    t_.line("  - relu");
    t_.line(fmt::format("  - linear: {}", outputs()), outputs_text());
  }

  // Convolutions, each followed by half the resolution, while there is enough of it.
  void volume_layers() {
    int64_t side = std::min({sample_[1], sample_[2], sample_[3]}), channels = 8;
    constexpr int64_t kSmallest = 4, kMostChannels = 64;
    for (bool first = true;; first = false, channels *= 2, side /= 2) {
      t_.line(
          fmt::format("  - conv3d: {{out_channels: {}, kernel_size: 3, padding: 1}}", channels));
      t_.line("  - batch_norm3d", first ? "keeps each channel's values in a standard range" : "");
      t_.line("  - relu", first ? "negative numbers become 0" : "");
      if (side < kSmallest || channels >= kMostChannels) break;
      t_.line("  - max_pool3d: 2", first ? "halves depth, height and width" : "");
    }
    t_.line("  - adaptive_avg_pool3d: 1", "the average of each channel");
    t_.line("  - flatten");
    t_.line(fmt::format("  - linear: {}", outputs()), outputs_text());
  }

  int64_t vocabulary() const {
    if (d_.tokens > 0) return d_.tokens;
    const auto values = values_of<int32_t>(d_.inputs);
    return values.empty() ? 1 : int64_t{*std::ranges::max_element(values)} + 1;
  }

  void token_layers() {
    constexpr int kWidth = 128;
    t_.line(fmt::format("  - embedding: {{num_embeddings: {}, embedding_dim: {}}}", vocabulary(),
                        predicts_next() ? kWidth : 32),
            "a learned vector for each token");
    if (!predicts_next()) {
      t_.line("  - flatten");
      number_layers_after_embedding();
      return;
    }
    t_.line("    init: {normal: {std: 0.02}}", "initial weights, as in GPT-2");
    t_.line("  - position_embedding:", "another for each position");
    t_.line("    init: {normal: {std: 0.02}}");
    for (int i = 0; i < 2; ++i) {
      t_.line("  - residual: [layer_norm, {multihead_attention: {num_heads: 4, causal: true}}]",
              i == 0 ? "looks back at earlier tokens" : "");
      t_.line(fmt::format("  - residual: [layer_norm, {{linear: {}}}, gelu, {{linear: {}}}]",
                          4 * kWidth, kWidth));
    }
    t_.line("  - layer_norm");
    t_.line(fmt::format("  - linear: {}", outputs()), "a score for each token that may follow");
  }

  void number_layers_after_embedding() {
    t_.line("  - linear: 64");
    t_.line("  - relu");
    t_.line(fmt::format("  - linear: {}", outputs()), outputs_text());
  }

  void training() {
    if (signs())
      t_.line("loss: soft_margin_loss", "for targets of 1 and -1");
    else if (labels())
      t_.line("loss: bce_with_logits_loss", "for several labels, each 0 or 1");
    else if (d_.classes == 0)
      t_.line("loss: mse_loss", "the mean of squared differences");
    else
      t_.line("loss: " + cross_entropy(), predicts_next()
                                              ? "how unlikely the net finds the next token"
                                              : "how unlikely the net finds the right classes");
    t_.line("optimizer: {adam_w: {lr: 0.001}}", "`dptrain lr-find SPEC` measures a learning rate");
    if (predicts_next()) t_.line("clip_grad_norm: 1", "a step's gradients have at most this norm");
    t_.line(fmt::format("epochs: {}", epochs()), "passes over the training set");
    if (validates(g_) && patience() < epochs())
      t_.line(fmt::format("early_stop: {}", patience()),
              fmt::format("ends after {} epochs without a lower validation loss", patience()));
    t_.empty();
    evaluation();
    t_.line("parallel: single", "dp: threads as devices; ddp: processes");
  }

  std::string cross_entropy() const {
    std::string keys = predicts_next() ? "class_dim: -1" : "";
    if (g_.ignore_index)
      keys += fmt::format("{}ignore_index: {}", keys.empty() ? "" : ", ", *g_.ignore_index);
    return keys.empty() ? "cross_entropy" : "{cross_entropy: {" + keys + "}}";
  }

  // About 2000 steps.
  int64_t epochs() const {
    constexpr int64_t kSteps = 2000, kFewest = 3, kMost = 50;
    return std::clamp(kSteps * batch_size() / d_.size(), kFewest, kMost);
  }

  // A loss of few samples goes up and down. The best weights are kept in any case.
  int64_t patience() const {
    constexpr int64_t kFewest = 5, kShare = 5;
    return std::max(kFewest, epochs() / kShare);
  }

  void evaluation() {
    const bool numbers = d_.classes == 0 && !signs() && !labels();
    const std::string_view set = validates(g_) ? "validation" : "test";
    if (!g_.has_test() && !validates(g_)) return;
    if (numbers)
      t_.line("evaluate: {metrics: [mae, r2]}",
              fmt::format("in addition to the loss, on the {} set", set));
    else if (d_.classes == 0)
      t_.line("evaluate: {metrics: [accuracy, f1, auc]}",
              fmt::format("means over the labels, on the {} set", set));
    else if (g_.has_test() && validates(g_))
      t_.line("evaluate: true", "at the end also on the test set, with the best weights");
    else if (g_.has_test())
      t_.line("evaluate: true", "loss and accuracy on the test set, each epoch");
  }

  const DataGuess& g_;
  const Dataset& d_;
  const std::string& folder_;
  Shape sample_;
  SpecText t_;
};

// Why init writes no net for these targets; empty: it does.
std::string why_not(const Dataset& d) {
  const Shape sample = d.inputs.sample(), target = d.targets.sample();
  const std::string both =
      fmt::format("the samples are {} {}, and the targets of each are {} {}", sample.str(),
                  name_of(d.inputs.desc.dtype), target.str(), name_of(d.targets.desc.dtype));
  if (like_channels_last(sample))
    return fmt::format(
        "the samples are {}, images with their channels last, as in Keras; dptrain takes "
        "[channels, height, width]: numpy.save(\"x.npy\", x.transpose(0, 3, 1, 2))",
        sample.str());
  if (d.classes == 0 && target.rank() != 1)
    return both +
           ": init writes nets for classes and for rows of numbers; write the spec as "
           "docs/specs.md shows, or store the targets as [N, columns]";
  const bool tokens = d.inputs.desc.dtype == DType::i32;
  if (sample.rank() == 0 && !tokens)
    return fmt::format(
        "the inputs are {} single numbers of type {}, but samples of a net are rows of numbers; "
        "store the inputs as [N, 1]: numpy.save(\"x.npy\", x.reshape(-1, 1))",
        d.size(), name_of(d.inputs.desc.dtype));
  if (d.classes == 0 || target.rank() == 0 || is_dense(d) || (tokens && target == sample))
    return "";
  if (target == Shape{1})
    return both +
           ": if these are classes, one per sample, save them as [N]: numpy.save(\"y.npy\", "
           "y.ravel())";
  const std::span<const int32_t> all = values_of<int32_t>(d.targets);
  if (target.rank() == 1 && marks_one(all, target[0]))
    return both +
           ": the targets are one-hot; save class numbers: numpy.save(\"y.npy\", y.argmax(1))";
  if (target.rank() == 1 && std::ranges::all_of(all, [](int32_t t) { return t == 0 || t == 1; }))
    return both +
           ": if each is a label that a sample may have, save them as float32: "
           "numpy.save(\"y.npy\", y.astype(\"float32\"))";
  const bool sequences = tokens || sample.rank() == 2;
  if (target.rank() == 1 && !sequences)
    return both +
           ": integers are classes, of which init writes nets for one per sample; save values as "
           "float32: numpy.save(\"y.npy\", y.astype(\"float32\"))";
  if (target.rank() == 1)
    return both +
           ": if these are sequences of labels, as in speech and handwriting, write the spec by "
           "hand with `loss: ctc_loss` (`dptrain explain ctc_loss`), for a model with the output "
           "[N, T, C]. For one class per position of a sequence, store the samples as [C, T] and "
           "the targets as [T]";
  return both +
         ": init writes nets for one class per sample, or per pixel or voxel of samples [C, H, W] "
         "or [C, D, H, W]. For other sizes write the model by hand, with the output [N, C, ...], "
         "where ... is the size of the targets, and `loss: cross_entropy`";
}

}  // namespace

bool splits_off_validation(const DataGuess& guess) {
  constexpr int64_t kFewest = 20;  // two samples to evaluate
  return !guess.has_test() && guess.validation.empty() && guess.train.size() >= kFewest;
}

bool validates(const DataGuess& guess) {
  return !guess.validation.empty() || splits_off_validation(guess);
}

std::string init_spec(const DataGuess& guess, const std::string& folder,
                      const std::string& schema) {
  if (const std::string reason = why_not(guess.train); !reason.empty())
    fail(Fault::spec, "no spec was written: {}", reason);
  return Writer(guess, folder).text(schema);
}

}  // namespace dpt
