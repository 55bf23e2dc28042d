#include "base/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
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

namespace {

// A dimension, and the distance between its neighbors on both sides, in elements.
struct Axis {
  int64_t extent, read, write;
};

// Copies tiles of two dimensions, so that the cache lines of both sides are used before they go.
template <class T>
void copy_plane(const Axis& a, const Axis& b, const T* x, T* y) {
  constexpr int64_t kTile = 16;
  for (int64_t i = 0; i < a.extent; i += kTile)
    for (int64_t j = 0; j < b.extent; j += kTile)
      for (int64_t p = i; p < std::min(i + kTile, a.extent); ++p)
        for (int64_t q = j; q < std::min(j + kTile, b.extent); ++q)
          y[p * a.write + q * b.write] = x[p * a.read + q * b.read];
}

// Copies the elements of all `axes`, of which the last two have neighbors on one side each.
template <class T>
void copy_axes(std::span<const Axis> axes, const T* x, T* y) {
  if (axes.size() == 2) return copy_plane(axes[0], axes[1], x, y);
  for (int64_t i = 0; i < axes[0].extent; ++i)
    copy_axes(axes.subspan(1), x + i * axes[0].read, y + i * axes[0].write);
}

using Strides = std::array<int64_t, Shape::kMaxRank>;

void copy_strided(const Shape& shape, size_t size, const Strides& read, const std::byte* x,
                  const Strides& write, std::byte* y) {
  std::vector<Axis> axes(2, {.extent = 1, .read = 0, .write = 0});
  for (int i = 0; i < shape.rank(); ++i)
    axes.push_back({shape[i], read[static_cast<size_t>(i)], write[static_cast<size_t>(i)]});
  // The nearest neighbors last.
  std::ranges::stable_sort(axes, std::ranges::greater{}, [](const Axis& a) {
    return a.extent == 1 ? std::numeric_limits<int64_t>::max() : std::min(a.read, a.write);
  });
  const auto copy = [&](auto element) {
    using T = decltype(element);
    copy_axes<T>(axes, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(y));
  };
  if (size == 1) return copy(uint8_t{});
  if (size == 2) return copy(uint16_t{});
  if (size == 4) return copy(uint32_t{});
  require(size == 8, "elements of 1, 2, 4 or 8 bytes");
  copy(uint64_t{});
}

// Of as many rows as there are bytes.
Shape part_of(const Shape& shape, size_t size, size_t bytes) {
  return shape.with(0, static_cast<int64_t>(bytes / size) / shape.tail(1).elements());
}

}  // namespace

void copy_layout(const Shape& shape, size_t size, Layout from, const std::byte* x, Layout to,
                 std::byte* y) {
  const auto elements = static_cast<size_t>(shape.elements());
  if (elements == 0) return;  // memcpy() of nothing must not have null pointers either
  if (same_order(shape, from, to))
    std::memcpy(y, x, elements * size);
  else
    copy_strided(shape, size, strides_of(shape, from), x, strides_of(shape, to), y);
}

void copy_rows_from(const Shape& shape, size_t size, Layout from, const std::byte* x, int64_t first,
                    std::span<std::byte> rows) {
  const Strides read = strides_of(shape, from);
  copy_strided(part_of(shape, size, rows.size()), size, read,
               x + static_cast<size_t>(first * read[0]) * size, strides_of(shape, Layout::plain),
               rows.data());
}

void copy_rows_to(const Shape& shape, size_t size, int64_t first, std::span<const std::byte> rows,
                  Layout to, std::byte* y) {
  const Strides write = strides_of(shape, to);
  copy_strided(part_of(shape, size, rows.size()), size, strides_of(shape, Layout::plain),
               rows.data(), write, y + static_cast<size_t>(first * write[0]) * size);
}

std::string Shape::str() const {
  return fmt::format("[{}]", fmt::join(dims_.begin(), dims_.begin() + rank_, ", "));
}

}  // namespace dpt
