// 64-bit integers whose arithmetic throws instead of wrapping around, for sizes, shapes, strides,
// bytes and counts that come from a spec. A result that does not fit throws Error{Fault::spec}; the
// caller that builds the layer or the session adds the location in the spec.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"

namespace dpt {

class Checked {
 public:
  template <std::integral T>
  constexpr Checked(T value)  // NOLINT(google-explicit-constructor): mixes with plain integers
      : value_(static_cast<int64_t>(value)) {
    if (!std::in_range<int64_t>(value)) overflow();
  }

  constexpr int64_t value() const { return value_; }
  // For memory sizes. Throws Error{spec} if the value is negative.
  constexpr size_t size() const {
    if (value_ < 0) overflow();
    return static_cast<size_t>(value_);
  }

  friend constexpr Checked operator+(Checked a, Checked b) {
    if (__builtin_add_overflow(a.value_, b.value_, &a.value_)) overflow();
    return a;
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    if (__builtin_sub_overflow(a.value_, b.value_, &a.value_)) overflow();
    return a;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    if (__builtin_mul_overflow(a.value_, b.value_, &a.value_)) overflow();
    return a;
  }
  Checked& operator+=(Checked more) { return *this = *this + more; }
  Checked& operator*=(Checked factor) { return *this = *this * factor; }

  // The next multiple of `to`. REQUIRES: neither value is negative, and `to` is not 0.
  constexpr Checked rounded_up(Checked to) const {
    const int64_t rest = value_ % to.value_;
    return rest == 0 ? *this : *this + (to - rest);
  }

 private:
  [[noreturn]] static void overflow() {
    throw Error(Fault::spec,
                "a size or count in this model overflows 64 bits; use smaller sizes or counts");
  }

  int64_t value_;
};

}  // namespace dpt
