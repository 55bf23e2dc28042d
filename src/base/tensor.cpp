#include "base/tensor.h"

#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked.h"
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

Shape Shape::batch(int64_t samples) const {
  std::vector<int64_t> out = {samples};
  out.insert(out.end(), extents().begin(), extents().end());
  return Shape(out);
}

int64_t Shape::elements() const {
  Checked n = 1;
  for (int i = 0; i < rank_; ++i) n *= (*this)[i];
  return n.value();
}

size_t TensorDesc::bytes() const { return (Checked(size_of(dtype)) * shape.elements()).size(); }

std::string_view name_of(Layout layout) {
  constexpr std::string_view kNames[] = {"plain", "channels_last", "transposed"};
  return kNames[static_cast<size_t>(layout)];
}

std::array<int64_t, Shape::kMaxRank> strides_of(const Shape& shape, Layout layout) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  Checked step = 1;
  const auto next = [&](int dim) {
    strides[static_cast<size_t>(dim)] = step.value();
    step *= shape[dim];
  };
  const bool moves = layout != Layout::plain && shape.rank() >= 2;
  if (moves && layout == Layout::transposed) next(0);
  if (moves) next(1);
  for (int i = shape.rank() - 1; i >= (moves ? 2 : 0); --i) next(i);
  if (moves && layout == Layout::channels_last) next(0);
  return strides;
}

bool same_order(const Shape& shape, Layout a, Layout b) {
  const auto x = strides_of(shape, a), y = strides_of(shape, b);
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] > 1 && x[static_cast<size_t>(i)] != y[static_cast<size_t>(i)]) return false;
  return true;
}

void copy_layout(const Shape& shape, size_t size, Layout from, const std::byte* x, Layout to,
                 std::byte* y) {
  const auto read = strides_of(shape, from), write = strides_of(shape, to);
  for (int64_t e = 0; e < shape.elements(); ++e) {
    int64_t rest = e, source = 0, target = 0;
    for (int i = shape.rank(); i-- > 0; rest /= shape[i]) {
      source += rest % shape[i] * read[static_cast<size_t>(i)];
      target += rest % shape[i] * write[static_cast<size_t>(i)];
    }
    std::memcpy(y + static_cast<size_t>(target) * size, x + static_cast<size_t>(source) * size,
                size);
  }
}

std::string Shape::str() const {
  return fmt::format("[{}]", fmt::join(dims_.begin(), dims_.begin() + rank_, ", "));
}

}  // namespace dpt
