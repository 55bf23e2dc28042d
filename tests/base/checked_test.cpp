#include "base/checked.h"

#include <limits>

#include <doctest/doctest.h>

#include "base/tensor.h"
#include "base/units.h"

namespace dpt {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

template <class F>
bool overflows(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.fault() == Fault::spec;
  }
  return false;
}

TEST_CASE("checked arithmetic gives the result, or an error of the spec") {
  CHECK((Checked(kMost - 1) + 1).value() == kMost);
  CHECK((Checked(kLeast + 1) - 1).value() == kLeast);
  CHECK((Checked(int64_t{1} << 31) * (int64_t{1} << 31)).value() == int64_t{1} << 62);
  CHECK(Checked(size_t{7}).size() == 7);
  CHECK(Checked(65).rounded_up(64).value() == 128);
  CHECK(Checked(64).rounded_up(64).value() == 64);
  CHECK(overflows([] { Checked(kMost) + 1; }));
  CHECK(overflows([] { Checked(kLeast) - 1; }));
  CHECK(overflows([] { Checked(int64_t{1} << 32) * (int64_t{1} << 31); }));
  CHECK(overflows([] { (void)Checked(size_t{1} << 63); }));
  CHECK(overflows([] { (void)Checked(-1).size(); }));
  CHECK(overflows([] { (void)Checked(kMost).rounded_up(64); }));
}

// 4611686018427387904 * 4 is 2^64, which wraps around to 0.
TEST_CASE("a shape's elements, bytes and strides do not wrap around") {
  const Shape wraps{4611686018427387904, 4};
  CHECK(overflows([&] { (void)wraps.elements(); }));
  CHECK(overflows([] { (void)TensorDesc{DType::f32, {int64_t{1} << 62}}.bytes(); }));
  CHECK(overflows([] { (void)TensorDesc{DType::f32, {-1}}.bytes(); }));
  CHECK(overflows([] {
    (void)strides_of(Shape{1, int64_t{1} << 32, int64_t{1} << 32}, Layout::plain);
  }));
  CHECK(Shape{1 << 20, 1 << 20}.elements() == int64_t{1} << 40);
}

TEST_CASE("bytes are rounded up to the next multiple") {
  CHECK(rounded_up(0, kCacheLine) == 0);
  CHECK(rounded_up(1, kCacheLine) == kCacheLine);
  CHECK(rounded_up(kPage, kPage) == kPage);
  CHECK(rounded_up(kPage + 1, kPage) == 2 * kPage);
  CHECK(rounded_up(10, 3) == 12);
  CHECK(rounded_up(kGiB, kMiB) == 1024 * kMiB);
}

}  // namespace
}  // namespace dpt
