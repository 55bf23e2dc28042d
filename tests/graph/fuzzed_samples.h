// Samples of operators with other shapes: extents that are equal in a sample are taken for one and
// the same, drawn anew and judged by the operator's shape rule. So there is no list of shapes that
// a new operator would have to be added to.
//   DPT_FUZZ_SHAPES=1000  shapes for each operator, in place of a test's own number
//   DPT_FUZZ_SEED=7       other ones
#pragma once

#include <algorithm>
#include <any>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "base/error.h"
#include "graph/attrs.h"
#include "graph/samples/samples.h"

namespace dpt {

inline uint64_t fuzz_setting(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class ShapeFuzzer {
 public:
  explicit ShapeFuzzer(uint64_t seed) : random_(static_cast<uint32_t>(seed)) {}

  // One of the samples, resized; none where all that was drawn was refused.
  std::optional<Sample> draw(const Samples& samples) {
    for (int attempt = 0; attempt < 40; ++attempt)
      if (auto s = resized(samples[below(samples.size())])) return s;
    return {};
  }

  size_t below(size_t n) { return random_() % n; }
  std::mt19937& random() { return random_; }

 private:
  static constexpr int64_t kMostElements = 6000;  // of one tensor

  std::optional<Sample> resized(Sample s) {
    drawn_.clear();
    for (TensorDesc& d : s.query.in) {
      d.shape = drawn(d.shape);
      if (d.shape.elements() > kMostElements) return {};
    }
    fit(s.query.attrs);
    for (size_t i = 0; i < s.ranges.size(); ++i) {
      Sample::Range& range = s.ranges[i];
      if (s.query.in[i].dtype != DType::i32) continue;
      range.high = static_cast<double>(limit(static_cast<int64_t>(range.high)));
      if (range.low >= range.high && s.query.in[i].shape.elements() > 0) return {};
    }
    // Indices of adaptive max pooling are those of pixels.
    if (const auto* resize = std::any_cast<Resize>(&s.query.attrs); resize && s.ranges.size() > 1)
      s.ranges[1].high =
          static_cast<double>(resize->extents[0] * resize->extents[1] * resize->extents[2]);
    try {
      s.query.out = op(s.query.op).infer(s.query.in, s.query.attrs);
    } catch (const Error&) {
      return {};
    }
    for (const TensorDesc& d : s.query.out)
      if (d.shape.elements() > kMostElements) return {};
    return s;
  }

  // The only settings that name extents.
  void fit(std::any& attrs) {
    if (auto* slice = std::any_cast<SliceOf>(&attrs)) {
      slice->length = drawn(slice->length);
      if (slice->extent > 0) slice->extent = drawn(slice->extent);
      slice->begin = static_cast<int64_t>(below(static_cast<size_t>(slice->begin) + 5));
    } else if (auto* embedding = std::any_cast<Embedding>(&attrs)) {
      if (embedding->rows > 0) embedding->rows = drawn(embedding->rows);
    } else if (auto* reshape = std::any_cast<Reshape>(&attrs)) {
      reshape->shape = drawn(reshape->shape);
    } else if (auto* convolution = std::any_cast<Convolution>(&attrs)) {
      for (int64_t& k : convolution->window.kernel)
        if (k > 1) k = drawn(k);
    } else if (auto* resize = std::any_cast<Resize>(&attrs)) {
      for (int64_t& e : resize->extents)
        if (e > 1) e = drawn(e);
    } else if (auto* mask = std::any_cast<ReluMask>(&attrs)) {
      mask->depth = drawn(mask->depth);
    } else if (auto* prelu = std::any_cast<PRelu>(&attrs)) {
      prelu->parameters = drawn(prelu->parameters);
    }
  }

  Shape drawn(const Shape& s) {
    std::vector<int64_t> extents;
    for (int64_t e : s.extents()) extents.push_back(drawn(e));
    return Shape(extents);
  }
  int64_t drawn(int64_t extent) {
    const auto [at, first] = drawn_.try_emplace(extent);
    if (first) at->second = below(4) == 0 ? extent : fresh();
    return at->second;
  }
  // For an index: an extent, or its last place.
  int64_t limit(int64_t high) const {
    for (const int64_t less : {0, 1})
      if (const auto at = drawn_.find(high + less); at != drawn_.end()) return at->second - less;
    return high;
  }
  // Around the widths of vectors, or small ones, or any.
  int64_t fresh() {
    constexpr int64_t kWidths[] = {7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};
    const size_t kind = below(10);
    if (kind < 5) return kWidths[below(std::size(kWidths))];
    return static_cast<int64_t>(below(kind < 9 ? 7 : 300));
  }

  std::mt19937 random_;
  std::map<int64_t, int64_t> drawn_;
};

}  // namespace dpt
