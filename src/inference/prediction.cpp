#include "inference/prediction.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/one_line.h"
#include "data/readers/csv.h"
#include "formats/csv_text.h"

namespace dpt {
namespace {

constexpr int64_t kMostValues = 64;
constexpr int kShownDigits = 7, kShownProbability = 4;  // on a terminal

// The most probable class first, NaN before all, and of equal scores the lower class: the first one
// is PyTorch's argmax.
bool before(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

// The shortest text that gives the same float32, for files: 1234501, 0.7.
std::string exact_text(double x) { return fmt::format("{}", static_cast<float>(x)); }

// The same as a number of a JSON file.
Json exact_number(double x) {
  constexpr int kDigits = 9;  // of a float32
  double out = x;
  const std::string text = exact_text(x);
  if (std::isfinite(x)) std::from_chars(text.data(), text.data() + text.size(), out);
  return Json::rounded(out, kDigits);
}

// For a terminal: all digits that a float32 has, and large numbers, such as prices, in full.
std::string shown_number(double x) {
  constexpr double kWhole = 1e7, kLargest = 1e15;
  return std::abs(x) >= kWhole && std::abs(x) < kLargest ? fmt::format("{:.0f}", x)
                                                         : fmt::format("{:.{}g}", x, kShownDigits);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<double> softmax(std::span<const float> scores) {
  const auto highest = static_cast<double>(*std::ranges::min_element(scores, before));
  std::vector<double> out;
  double sum = 0;
  for (const float x : scores) sum += out.emplace_back(std::exp(static_cast<double>(x) - highest));
  for (double& x : out) x /= sum;
  return out;
}

TensorDesc target_of(const Spec& spec, const SampleForm& form) {
  TensorDesc out =
      takes_input(spec.data.target_transforms) ? input_of(form, spec.data.transforms) : form.target;
  for (const Choice& t : spec.data.target_transforms)
    out = static_cast<const TargetTransformType*>(t.what)->infer(t.settings, out, form.classes);
  return out;
}

// Lines of columns; the first column is left-aligned, the others right-aligned.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string end = i + 1 == row.size() ? "\n" : "  ";
      out += i == 0 ? fmt::format("{:<{}}{}", row[i], widths[i], end)
                    : fmt::format("{:>{}}{}", row[i], widths[i], end);
    }
  return out;
}

}  // namespace

std::vector<float> outputs_of(TrainedModel& model, const BatchLoader& loader) {
  std::vector<float> out(static_cast<size_t>(loader.size() * model.output().elements()));
  model.run(
      loader.size(),
      [&](int64_t first, int64_t count, std::byte* to) {
        std::vector<uint32_t> rows(static_cast<size_t>(count));
        std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(first));
        if (loader.input().dtype == DType::i32)
          loader.inputs(rows, reinterpret_cast<int32_t*>(to));
        else
          loader.inputs(rows, reinterpret_cast<float*>(to));
      },
      out);
  return out;
}

PredictionTable::PredictionTable(const Spec& spec, const SampleForm& form, const InputFiles& inputs,
                                 const Shape& output, int64_t top)
    : spec_(spec),
      form_(form),
      inputs_(inputs),
      loss_(*static_cast<const LossType*>(spec.loss.what)),
      kind_(loss_.outputs),
      target_(target_of(spec, form)),
      output_(output) {
  if (loss_.blank != nullptr) {
    shown_ = Shown::labels;
    return;
  }
  const bool reconstructs = takes_input(spec.data.target_transforms);
  if (!reconstructs && form.classes > 0 && output.rank() == 1 && output[0] >= form.classes) {
    shown_ = Shown::classes;
    top_ = std::min(top, output[0]);
    return;
  }
  if (!reconstructs && form.classes > 0 && output.rank() > 1)
    fail(
        Fault::spec,
        "the model outputs {} for each sample, not one list of scores; write its outputs to a file "
        "with -o FILE.npy",
        output.str());
  if (output.elements() > kMostValues)
    fail(Fault::spec,
         "the model outputs {} values for each sample; write them to a file with -o FILE.npy",
         output.elements());
}

std::span<const float> PredictionTable::output_of(std::span<const float> outputs,
                                                  int64_t sample) const {
  const auto width = static_cast<size_t>(output_.elements());
  return outputs.subspan(static_cast<size_t>(sample) * width, width);
}

std::vector<PredictionTable::Ranked> PredictionTable::ranked(std::span<const float> output) const {
  std::vector<int64_t> order(output.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return before(output[static_cast<size_t>(a)], output[static_cast<size_t>(b)]);
  });
  const std::vector<double> shares = softmax(output);
  std::vector<Ranked> out;
  for (const int64_t i : std::span(order).first(static_cast<size_t>(top_))) {
    const auto x = static_cast<double>(output[static_cast<size_t>(i)]);
    const double score = kind_ == OutputKind::scores              ? shares[static_cast<size_t>(i)]
                         : kind_ == OutputKind::log_probabilities ? std::exp(x)
                         : kind_ == OutputKind::logits            ? sigmoid(x)
                                                                  : x;
    out.push_back({.index = i, .score = score});
  }
  return out;
}

std::vector<int64_t> PredictionTable::labels(std::span<const float> output) const {
  const int64_t blank = loss_.blank(spec_.loss.settings);
  const auto width = static_cast<size_t>(output_[1]);
  std::vector<int64_t> out;
  int64_t last = blank;
  for (size_t t = 0; t < static_cast<size_t>(output_[0]); ++t) {
    const std::span<const float> scores = output.subspan(t * width, width);
    const int64_t best =
        std::ranges::max_element(scores, [](float a, float b) { return before(b, a); }) -
        scores.begin();
    if (best != last && best != blank) out.push_back(best);
    last = best;
  }
  return out;
}

// REQUIRES: values of target_.
void PredictionTable::undo_transforms(std::span<float> values) const {
  const TensorView view{{DType::f32, target_.shape}, reinterpret_cast<std::byte*>(values.data())};
  const std::vector<Choice>& all = spec_.data.target_transforms;
  for (auto t = all.rbegin(); t != all.rend(); ++t)
    if (const auto* type = static_cast<const TargetTransformType*>(t->what); type->undo)
      type->undo(t->settings, view);
}

std::vector<float> PredictionTable::values(std::span<const float> output) const {
  std::vector<float> out(output.begin(), output.end());
  const auto count = static_cast<size_t>(target_.shape.elements());
  if (kind_ == OutputKind::scores && output_.rank() == 1)  // of targets that are probabilities
    std::ranges::copy(softmax(output), out.begin());
  for (float& x : out)
    if (kind_ == OutputKind::logits)
      x = static_cast<float>(sigmoid(static_cast<double>(x)));
    else if (loss_.estimate != nullptr)
      x = static_cast<float>(loss_.estimate(spec_.loss.settings, static_cast<double>(x)));
  if (loss_.variance != nullptr && out.size() == 2 * count) {
    undo_transforms(std::span(out).first(count));
    // A variance is scaled by the square of the factor of the value, which two values that are far
    // apart show.
    constexpr float kFar = 1 << 20;
    std::vector<float> zero(count, 0.F), far(count, kFar);
    undo_transforms(zero);
    undo_transforms(far);
    for (size_t i = 0; i < count; ++i) {
      const double factor = (static_cast<double>(far[i]) - static_cast<double>(zero[i])) / kFar;
      const double variance =
          loss_.variance(spec_.loss.settings, static_cast<double>(out[count + i]));
      out[count + i] = static_cast<float>(variance * factor * factor);
    }
  } else if (kind_ == OutputKind::values && target_.shape == output_) {
    undo_transforms(out);
  }
  return out;
}

std::string PredictionTable::class_name(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  return i < form_.class_names.size() ? form_.class_names[i] : std::to_string(index);
}

std::string PredictionTable::score_name() const {
  return kind_ == OutputKind::values ? "score" : "probability";
}

std::vector<std::string> PredictionTable::value_names() const {
  std::vector<std::string> out;
  const bool variances = loss_.variance != nullptr;
  const auto count = static_cast<size_t>(output_.elements()) / (variances ? 2 : 1);
  const TableColumns& columns = form_.columns;
  const std::vector<size_t>& of =
      takes_input(spec_.data.target_transforms) ? columns.inputs : columns.targets;
  const bool named = columns.header && of.size() == count;
  for (const char* what : {variances ? "mean" : "value", "variance"})
    for (size_t i = 0; i < count && (variances || out.size() < count); ++i) {
      const std::string name = named ? columns.names[of[i]] : "";
      if (named)
        out.push_back(variances ? fmt::format("{} {}", name, what) : name);
      else
        out.push_back(count == 1 ? what : fmt::format("{} {}", what, i));
    }
  return out;
}

std::vector<std::string> PredictionTable::columns() const {
  if (shown_ == Shown::values) return value_names();
  if (shown_ == Shown::labels) return {"labels"};
  std::vector<std::string> out;
  for (int64_t k = 1; k <= top_; ++k)
    for (const std::string& name : {std::string("class"), score_name()})
      out.push_back(k == 1 ? name : fmt::format("{} {}", name, k));
  return out;
}

std::vector<std::string> PredictionTable::cells(std::span<const float> output, bool exact) const {
  std::vector<std::string> out;
  if (shown_ == Shown::values) {
    for (const float x : values(output))
      out.push_back(exact ? fmt::format("{}", x) : shown_number(x));
    return out;
  }
  if (shown_ == Shown::labels) {
    std::string& sequence = out.emplace_back();
    for (const int64_t label : labels(output))
      sequence += (sequence.empty() ? "" : " ") + class_name(label);
    return out;
  }
  const bool probability = kind_ != OutputKind::values;
  for (const Ranked& r : ranked(output)) {
    out.push_back(class_name(r.index));
    out.push_back(exact         ? exact_text(r.score)
                  : probability ? fmt::format("{:.{}f}", r.score, kShownProbability)
                                : shown_number(r.score));
  }
  return out;
}

std::string PredictionTable::text(std::span<const float> outputs) const {
  // Images need no number of a row.
  const bool rows = std::ssize(inputs_.files) < inputs_.dataset.size();
  std::vector<std::vector<std::string>> lines;
  const auto add = [&](std::string file, std::string row, const std::vector<std::string>& cells) {
    std::vector<std::string> line{std::move(file)};
    if (rows) line.push_back(std::move(row));
    for (const std::string& cell : cells) line.push_back(one_line(cell));
    lines.push_back(std::move(line));
  };
  add("file", "row", columns());
  for (const int64_t s : inputs_.read_samples()) {
    const InputFiles::Origin origin = inputs_.origin(s);
    add(origin.file, std::to_string(origin.row), cells(output_of(outputs, s), false));
  }
  return aligned(lines);
}

std::string PredictionTable::csv(std::span<const float> outputs) const {
  std::vector<std::string> names = {"file", "row"};
  for (std::string& name : columns()) names.push_back(std::move(name));
  std::string out;
  for (const std::string& name : unique_csv_names(std::move(names)))
    out += (out.empty() ? "" : ",") + csv_text(name);
  out += "\n";
  for (const int64_t s : inputs_.read_samples()) {
    const InputFiles::Origin origin = inputs_.origin(s);
    out += fmt::format("{},{}", csv_text(origin.file), origin.row);
    for (const std::string& cell : cells(output_of(outputs, s), true)) out += "," + csv_text(cell);
    out += "\n";
  }
  return out;
}

Json PredictionTable::json_of(int64_t sample, std::span<const float> outputs) const {
  const InputFiles::Origin origin = inputs_.origin(sample);
  const std::span<const float> output = output_of(outputs, sample);
  Json one{{"file", origin.file}, {"row", origin.row}};
  if (shown_ == Shown::classes) {
    Json classes = Json::array();
    for (const Ranked& r : ranked(output)) {
      Json c{{"class", r.index}};
      if (!form_.class_names.empty()) c.add("name", class_name(r.index));
      c.add(score_name(), exact_number(r.score));
      classes.push(std::move(c));
    }
    one.add("classes", std::move(classes));
  } else if (shown_ == Shown::labels) {
    const std::vector<int64_t> sequence = labels(output);
    one.add("labels", Json::array_of(sequence));
    if (form_.class_names.empty()) return one;
    Json names = Json::array();
    for (const int64_t label : sequence) names.push(class_name(label));
    one.add("names", std::move(names));
  } else {
    Json values_json = Json::object();
    const std::vector<std::string> names = value_names();
    const std::vector<float> numbers = values(output);
    for (size_t i = 0; i < numbers.size(); ++i)
      values_json[names[i]] = exact_number(static_cast<double>(numbers[i]));
    one.add("values", std::move(values_json));
  }
  return one;
}

std::string PredictionTable::json(std::span<const float> outputs) const {
  Json all = Json::array();
  for (const int64_t s : inputs_.read_samples()) all.push(json_of(s, outputs).on_line(2));
  return Json{{"predictions", std::move(all)}}.dump() + "\n";
}

std::string PredictionTable::json_lines(std::span<const float> outputs) const {
  std::string out;
  for (const int64_t s : inputs_.read_samples()) out += json_of(s, outputs).dump() + "\n";
  return out;
}

}  // namespace dpt
