// What the tables of formulas share (activations.h, losses.h): lists of formulas and the parameters
// that a spec can set.
#pragma once

namespace dpt::formula {

template <class... F>
struct FormulaList {
  static constexpr int kSize = sizeof...(F);
};

// Index of a formula in a list.
template <class A, class... F>
constexpr int index_in(FormulaList<F...>) {
  int at = 0;
  (void)((__is_same(A, F) || (++at, false)) || ...);
  return at;
}

// Types of their own, since nvcc writes parentheses around them that gcc warns of.
template <class F>
using Number = double F::*;
template <class F>
using Flag = bool F::*;

// The numbers that a parameter accepts.
struct Bound {
  bool positive = false, not_negative = false;
  // Another condition, and what it requires: "must be even".
  const char* text = nullptr;
  bool (*holds)(const double& value) = nullptr;
  bool required = false;  // PyTorch has no default
};
inline constexpr Bound kAboveZero{.positive = true}, kFromZero{.not_negative = true},
    kRequired{.required = true};

// A number or a flag.
template <class F>
struct Parameter {
  const char* name;
  Number<F> number = nullptr;
  Flag<F> flag = nullptr;
  const char* text;
  Bound bound{};

  constexpr Parameter(const char* its_name, Number<F> member, const char* what, Bound limit = {})
      : name(its_name), number(member), text(what), bound(limit) {}
  constexpr Parameter(const char* its_name, Flag<F> member, const char* what)
      : name(its_name), flag(member), text(what) {}
};

template <class T, int kSize>
constexpr int size_of_array(const T (&)[kSize]) {
  return kSize;
}
template <class F>
inline constexpr int kParametersOf = 0;
template <class F>
requires requires { F::kParameters; }
inline constexpr int kParametersOf<F> = size_of_array(F::kParameters);

// Calls f for each parameter, in order.
template <class F, class Visitor>
constexpr void each_parameter(Visitor f) {
  if constexpr (kParametersOf < F >> 0)
    for (const auto& p : F::kParameters) f(p);
}

// The formula with these parameters, in order; flags are 0 or 1.
template <class F>
constexpr F with_parameters([[maybe_unused]] const double* values) {
  F out;
  each_parameter<F>([&](const Parameter<F>& p) {
    if (p.flag)
      out.*p.flag = *values++ != 0;
    else
      out.*p.number = *values++;
  });
  return out;
}

}  // namespace dpt::formula
