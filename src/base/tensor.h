// What a tensor is (TensorDesc) and where one lies (TensorView). Nothing here owns memory.
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

// Up to six extents, row-major: the last one varies fastest.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t elements() const;  // Throws Error{spec} where they are more than 64 bits count
  int64_t back() const { return (*this)[rank_ - 1]; }  // REQUIRES: rank() > 0
  Shape with(int i, int64_t extent) const;             // the same but for one extent
  Shape tail(int from) const;                          // the extents from number `from` on
  std::span<const int64_t> extents() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  std::string str() const;  // "[32, 784]"
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// The order in which a tensor's elements lie in memory; shapes, names and files are torch's in
// each.
//   plain          row-major: of [N, C, H, W] the width varies fastest
//   channels_last  [N, ..., C]: what stands at one place of an image stands together
//   transposed     of a weight [O, I, ...]: [..., I, O], what one input is multiplied by together
enum class Layout : uint8_t { plain, channels_last, transposed };
std::string_view name_of(Layout layout);

struct TensorDesc {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::plain;
  size_t bytes() const;  // Throws as elements() does
  bool operator==(const TensorDesc&) const = default;
};

// How far apart in memory neighbours of each extent are, in elements.
std::array<int64_t, Shape::kMaxRank> strides_of(const Shape& shape, Layout layout);
// Both layouts put the elements of such a shape in the same order.
bool same_order(const Shape& shape, Layout a, Layout b);

// Copies elements of `size` bytes from one layout to another. REQUIRES: they don't overlap.
void copy_layout(const Shape& shape, size_t size, Layout from, const std::byte* x, Layout to,
                 std::byte* y);

// Calls f with a null pointer of the C++ type of a floating dtype: one place that knows which
// types the plain loops are made for. REQUIRES: dtype is f32 or f64.
template <class F>
decltype(auto) with_real(DType dtype, F&& f) {
  return dtype == DType::f64 ? f(static_cast<double*>(nullptr)) : f(static_cast<float*>(nullptr));
}

// Elements at `data`, without gaps, in the order of the layout, which belong to an arena that
// outlives the view.
struct TensorView {
  TensorDesc desc;
  std::byte* data = nullptr;
  template <class T>
  std::span<T> as() const {  // REQUIRES: T is the C++ type of desc.dtype, and data is host memory
    return {reinterpret_cast<T*>(data), static_cast<size_t>(desc.shape.elements())};
  }
};

}  // namespace dpt
