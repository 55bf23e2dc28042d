// TensorDesc describes a tensor, TensorView says where it lies in memory. Neither owns memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace dpt {

enum class DType : uint8_t { f32, bf16, f16, f64, i64, i32, u8 };
size_t size_of(DType t);
std::string_view name_of(DType t);

// Up to six extents, outermost first.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t elements() const;  // throws Error{spec} if the count does not fit into 64 bits
  int64_t back() const { return (*this)[rank_ - 1]; }  // REQUIRES: rank() > 0
  Shape with(int i, int64_t extent) const;             // a copy with one extent replaced
  Shape tail(int from) const;                          // extents from index `from` on
  Shape batch(int64_t samples) const;                  // [samples, extents...]
  std::span<const int64_t> extents() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  std::string str() const;  // "[32, 784]"
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// The order of a tensor's elements in memory. Shapes, names and files are PyTorch's in every
// layout.
//   plain          row-major: in [N, C, H, W] the width varies fastest
//   channels_last  [N, ..., C]: the channels of a pixel are adjacent
//   transposed     [O, I, ...] is stored as [..., I, O]: the weights of an input are adjacent
enum class Layout : uint8_t { plain, channels_last, transposed };
std::string_view name_of(Layout layout);

struct TensorDesc {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::plain;
  size_t bytes() const;  // throws like Shape::elements()
  bool operator==(const TensorDesc&) const = default;
};

// The distance in memory between neighbors along each dimension, in elements.
std::array<int64_t, Shape::kMaxRank> strides_of(const Shape& shape, Layout layout);
// Whether both layouts store a tensor of this shape in the same order.
bool same_order(const Shape& shape, Layout a, Layout b);

// Copies elements of `size` bytes from one layout to another. REQUIRES: x and y do not overlap;
// size is 1, 2, 4 or 8.
void copy_layout(const Shape& shape, size_t size, Layout from, const std::byte* x, Layout to,
                 std::byte* y);

// The same for `rows`, a part of the tensor along its first dimension: row-major bytes of the
// indices from `first` on. REQUIRES: rank >= 1.
void copy_rows_from(const Shape& shape, size_t size, Layout from, const std::byte* x, int64_t first,
                    std::span<std::byte> rows);
void copy_rows_to(const Shape& shape, size_t size, int64_t first, std::span<const std::byte> rows,
                  Layout to, std::byte* y);

// A contiguous tensor, in the order of its layout. The memory belongs to an arena that outlives the
// view.
struct TensorView {
  TensorDesc desc;
  std::byte* data = nullptr;
  template <class T>
  std::span<T> as() const {  // REQUIRES: T is the C++ type of desc.dtype, and data is host memory
    return {reinterpret_cast<T*>(data), static_cast<size_t>(desc.shape.elements())};
  }
};

}  // namespace dpt
