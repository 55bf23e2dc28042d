#include "data/channel_scaling.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "data/summary.h"
#include "data/tables.h"

namespace dpt {

size_t scaled_channels(const Shape& sample) {
  return sample.rank() == 0 ? 1 : static_cast<size_t>(sample[0]);
}

std::vector<ChannelScaling> fit_channels(std::span<const double> values, const Shape& sample,
                                         std::span<const uint32_t> rows, const std::string& path) {
  const auto elements = static_cast<size_t>(sample.elements());
  const size_t count = rows.empty() ? values.size() / elements : rows.size();
  const size_t channels = scaled_channels(sample), inner = elements / channels;
  std::vector<ValueRange> ranges(channels);
  for (size_t i = 0; i < count; ++i) {
    const size_t row = rows.empty() ? i : rows[i];
    for (size_t k = 0; k < elements; ++k) {
      const double x = values[row * elements + k];
      if (!std::isfinite(x))
        fail(Fault::data,
             "{}: sample {} (counted from 0) has a number that is not finite, which `standardize` "
             "cannot take; fix or remove that sample",
             path, row);
      ranges[k / inner].add(x);
    }
  }
  std::vector<ChannelScaling> out;
  for (const ValueRange& r : ranges) {
    constexpr double kRounding = 1e-12;  // of the sum of equal numbers, relative
    const double largest = std::max(std::abs(r.min()), std::abs(r.max()));
    out.push_back({.mean = r.mean(), .std = r.std() > kRounding * largest ? r.std() : 1});
  }
  return out;
}

Table scaled(std::span<const double> values, const Shape& shape,
             std::span<const ChannelScaling> channels) {
  const NewTable out({DType::f32, shape});
  const std::span<float> to = out.as<float>();
  const auto elements = static_cast<size_t>(shape.tail(1).elements());
  const size_t inner = elements / channels.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const ChannelScaling& c = channels[i % elements / inner];
    to[i] = static_cast<float>((values[i] - c.mean) / c.std);
  }
  return NewTable(out).done();
}

}  // namespace dpt
