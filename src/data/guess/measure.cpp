// What the values of a data set say: means and standard deviations for `normalize` and
// `standardize`, and labels that are no classes.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/fail.h"
#include "base/image_shape.h"
#include "data/guess/guess.h"
#include "data/readers/npy.h"
#include "data/spread_rows.h"
#include "data/tables.h"

namespace dpt {
namespace {

constexpr int64_t kMostListed = 32;  // channels or columns that a spec can list readably

// Of numbers that are added one by one (Welford 1962).
struct Moments {
  int64_t count = 0;
  double mean = 0, squares = 0;
  void add(double x) {
    const double before = x - mean;
    mean += before / static_cast<double>(++count);
    squares += before * (x - mean);
  }
  double deviation() const {
    const double d = count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
    return d > 1e-12 * std::abs(mean) ? d : 0;
  }
};

void write(const std::vector<Moments>& from, std::vector<double>& mean, std::vector<double>& std) {
  for (const Moments& m : from) {
    const double deviation = m.deviation();
    mean.push_back(std::isfinite(m.mean) ? m.mean : 0);
    std.push_back(deviation > 0 && std::isfinite(deviation) ? deviation : 1);  // constant: 1
  }
}

// One for each element of the samples' first dimension, or one for all.
std::vector<Moments> moments_for(const Shape& sample) {
  const int64_t first = sample.rank() > 0 ? sample[0] : 1;
  const bool listed = first <= kMostListed && !like_gray_image(sample);
  return std::vector<Moments>(listed ? static_cast<size_t>(first) : 1);
}

template <class T>
void add_sample(std::span<const T> x, double scale, std::vector<Moments>& to) {
  const size_t inner = std::max<size_t>(1, x.size() / to.size());
  for (size_t i = 0; i < x.size(); ++i)
    to[std::min(i / inner, to.size() - 1)].add(static_cast<double>(x[i]) * scale);
}

void add_row(const Dataset& d, int64_t row, std::vector<Moments>& to) {
  constexpr double kByte = 1.0 / 255;
  const auto elements = static_cast<size_t>(d.inputs.sample().elements());
  const auto first = static_cast<size_t>(row * d.inputs.step());
  if (d.reader) {
    std::vector<std::byte> sample(elements);
    d.reader->read(static_cast<uint32_t>(row), sample);
    add_sample<uint8_t>({reinterpret_cast<const uint8_t*>(sample.data()), elements}, kByte, to);
  } else if (d.inputs.desc.dtype == DType::u8) {
    add_sample(values_of<uint8_t>(d.inputs).subspan(first, elements), kByte, to);
  } else {
    add_sample(values_of<float>(d.inputs).subspan(first, elements), 1, to);
  }
}

constexpr int64_t kVoid = 255;  // in Pascal VOC and Cityscapes

// As in masks of black and white pixels.
template <class T>
bool black_and_white(std::span<const T> labels) {
  const bool all =
      std::ranges::all_of(labels, [](T label) { return label == 0 || label == kVoid; });
  return all && std::ranges::find(labels, T{0}) != labels.end() &&
         std::ranges::find(labels, static_cast<T>(kVoid)) != labels.end();
}

template <class T>
std::optional<int64_t> ignored_of(std::span<const T> labels, const std::string& path) {
  constexpr int64_t kFar = 254;
  if (black_and_white(labels))
    fail(Fault::data,
         "{0} holds only 0 and 255, as masks of black and white pixels do, but classes are "
         "numbered 0 and 1; convert it: numpy.save(\"{0}\", (numpy.load(\"{0}\") > "
         "0).astype(\"uint8\"))",
         path);
  std::optional<int64_t> negative;
  int64_t below = 0;  // the largest label below 255
  bool has_void = false, beyond = false, signs = true;
  for (const int64_t label : labels) {
    signs = signs && (label == 1 || label == -1);
    if (label < 0 && negative && *negative != label) return {};
    if (label < 0) negative = label;
    if (label < kVoid) below = std::max(below, label);
    has_void = has_void || label == kVoid;
    beyond = beyond || label > kVoid;
  }
  if (negative) return signs ? std::nullopt : negative;  // 1 and -1 are numbers
  return has_void && !beyond && below < kFar ? std::optional(kVoid) : std::nullopt;
}

}  // namespace

std::optional<int64_t> ignored_label(const DataGuess& guess) {
  const auto targets =
      std::ranges::find(guess.settings, std::string("targets"), &DataGuess::Setting::key);
  if (guess.type != "npy" || targets == guess.settings.end()) return {};
  const Table table = read_npy(targets->value);
  if (table.desc.shape.rank() < 2 || table.desc.dtype == DType::f32) return {};
  return table.desc.dtype == DType::u8 ? ignored_of(values_of<uint8_t>(table), targets->value)
                                       : ignored_of(values_of<int32_t>(table), targets->value);
}

void measure_data(DataGuess& guess) {
  const Dataset& d = guess.train;
  constexpr int64_t kMostRead = 5000, kMostDecoded = 1000;
  if (!guess.standardizes &&
      (d.inputs.desc.dtype == DType::f32 || d.inputs.desc.dtype == DType::u8)) {
    std::vector<Moments> inputs = moments_for(d.inputs.sample());
    // Tables are small, and their columns may have rare values.
    const bool whole = d.inputs.sample().rank() == 1;
    const int64_t count = std::min(d.size(), d.reader ? kMostDecoded
                                             : whole  ? d.size()
                                                      : kMostRead);
    for (const size_t row : spread_rows(static_cast<size_t>(d.size()), static_cast<size_t>(count)))
      add_row(d, static_cast<int64_t>(row), inputs);
    write(inputs, guess.mean, guess.std);
    guess.measured = count;
  }
  if (d.classes > 0 || d.targets.desc.dtype != DType::f32) return;
  std::vector<Moments> targets = moments_for(d.targets.sample());
  const auto elements = static_cast<size_t>(d.targets.sample().elements());
  for (int64_t i = 0; i < d.size(); ++i)
    add_sample(values_of<float>(d.targets).subspan(static_cast<size_t>(i) * elements, elements), 1,
               targets);
  write(targets, guess.target_mean, guess.target_std);
}

}  // namespace dpt
