// Samples in the order in which an epoch draws them. A sampler with replacement may draw a sample
// several times; `repeat` tells these draws apart, so that random transforms differ between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dpt {

struct DrawnSample {
  uint32_t row = 0;     // the sample's number in its data set
  uint32_t repeat = 0;  // how many times the epoch drew it before
};

// A view of drawn samples, which must outlive it. Sample numbers alone convert to samples that are
// drawn for the first time.
class DrawnSamples {
 public:
  DrawnSamples() = default;
  // repeats: one per row; empty: all 0.
  // NOLINTBEGIN(google-explicit-constructor)
  DrawnSamples(std::span<const uint32_t> rows, std::span<const uint32_t> repeats = {})
      : rows_(rows), repeats_(repeats) {}
  DrawnSamples(const std::vector<uint32_t>& rows) : rows_(rows) {}
  // NOLINTEND(google-explicit-constructor)

  size_t size() const { return rows_.size(); }
  DrawnSample operator[](size_t i) const { return {rows_[i], repeats_.empty() ? 0 : repeats_[i]}; }
  DrawnSamples subspan(size_t begin, size_t count) const {
    return {rows_.subspan(begin, count),
            repeats_.empty() ? repeats_ : repeats_.subspan(begin, count)};
  }
  std::span<const uint32_t> rows() const { return rows_; }
  std::span<const uint32_t> repeats() const { return repeats_; }

 private:
  std::span<const uint32_t> rows_, repeats_;
};

}  // namespace dpt
