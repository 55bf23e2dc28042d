#include "base/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace dpt {

size_t size_of(DType t) {
  constexpr size_t kSizes[] = {4, 2, 2, 8, 8, 4, 1};
  return kSizes[static_cast<size_t>(t)];
}

std::string_view name_of(DType t) {
  constexpr std::string_view kNames[] = {"f32", "bf16", "f16", "f64", "i64", "i32", "u8"};
  return kNames[static_cast<size_t>(t)];
}

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) {
  require(dims.size() <= kMaxRank, "a shape has at most six extents");
  for (int64_t d : dims) dims_[static_cast<size_t>(rank_++)] = d;
}

Shape Shape::with(int i, int64_t extent) const {
  Shape out = *this;
  out.dims_[static_cast<size_t>(i)] = extent;
  return out;
}

Shape Shape::tail(int from) const { return Shape(extents().subspan(static_cast<size_t>(from))); }

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= (*this)[i];
  return n;
}

std::string Shape::str() const {
  return fmt::format("[{}]", fmt::join(dims_.begin(), dims_.begin() + rank_, ", "));
}

}  // namespace dpt
