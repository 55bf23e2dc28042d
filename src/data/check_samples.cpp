#include "data/check_samples.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "base/count.h"
#include "base/error.h"
#include "data/tables.h"

namespace dpt {
namespace {

constexpr int64_t kMostProblems = 10;

// what: "an input".
void check_finite(const Table& table, std::string_view set, std::string_view what,
                  SampleReport& out) {
  if (table.desc.dtype != DType::f32 || !table.data) return;
  const std::span<const float> values = values_of<float>(table);
  const auto is_broken = [](float v) { return !std::isfinite(v); };
  int64_t samples = 0, first = 0, last = -1;
  for (auto at = std::ranges::find_if(values, is_broken); at != values.end();
       at = std::find_if(at + 1, values.end(), is_broken)) {
    const int64_t sample = (at - values.begin()) / table.step();
    if (samples == 0) first = sample;
    if (sample != last) ++samples;
    last = sample;
  }
  if (samples == 0) return;
  out.problems.push_back(fmt::format(
      "sample {} of the {} set (counted from 0) has {} that is not finite{}; fix or remove {}",
      first, set, what,
      samples == 1 ? ""
                   : fmt::format(", and so {} {}", samples == 2 ? "has" : "have",
                                 counted(samples - 1, "other")),
      samples == 1 ? "that sample" : "them"));
}

void decode(const Dataset& dataset, int64_t most_decoded, SampleReport& out) {
  const int64_t samples = dataset.size();
  const int64_t count = std::min(samples, most_decoded);
  std::vector<std::byte> sample(static_cast<size_t>(dataset.inputs.sample().elements()) *
                                size_of(dataset.inputs.desc.dtype));
  for (int64_t i = 0; i < count; ++i) {
    // Evenly spread, with the first one; samples * count fits, as there are at most 2^28 samples.
    const auto row = static_cast<uint32_t>(i * samples / count);
    try {
      dataset.reader->read(row, sample);
    } catch (const Error& e) {
      if (e.fault() != Fault::data) throw;
      if (++out.broken <= kMostProblems) out.problems.emplace_back(e.what());
    }
  }
  if (out.broken > kMostProblems)
    out.problems.push_back(fmt::format("{} cannot be read either",
                                       counted(out.broken - kMostProblems, "other sample")));
  out.read = count;
  out.remarks = dataset.reader->remarks();
}

}  // namespace

SampleReport check_samples(const Dataset& dataset, std::string_view set, int64_t most_decoded) {
  SampleReport out;
  if (!dataset.made) return out;
  if (dataset.reader)
    decode(dataset, most_decoded, out);
  else
    check_finite(dataset.inputs, set, "an input", out);
  check_finite(dataset.targets, set, "a target", out);
  return out;
}

}  // namespace dpt
