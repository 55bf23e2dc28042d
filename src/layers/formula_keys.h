// The parameters of a formula (graph/formulas/parameter.h) as keys of a spec, and as arguments of
// the same thing in PyTorch.
#pragma once

#include "formats/python_call.h"
#include "graph/formulas/parameter.h"
#include "spec/keys.h"

namespace dpt {

inline Rule<double> rule_of(const formula::Bound& bound) {
  if (bound.positive) return kPositive;
  if (bound.not_negative) return kNotNegative;
  return bound.holds ? Rule<double>(bound.text, bound.holds) : Rule<double>();
}

template <class F, class Table>
void add_parameters(Table& keys) {
  formula::each_parameter<F>([&](const auto& p) {
    if (p.flag)
      keys.optional(p.name, p.flag, p.text);
    else if (p.bound.required)
      keys.required(p.name, p.number, p.text);
    else
      keys.optional(p.name, p.number, p.text, rule_of(p.bound));
  });
}

// Adds those that differ from PyTorch's defaults.
template <class F>
void add_arguments(PythonCall& call, const F& values) {
  formula::each_parameter<F>([&](const auto& p) {
    if (p.flag)
      call.key(p.name, values.*p.flag, F{}.*p.flag);
    else if (p.bound.required)
      call.key(p.name, values.*p.number);
    else
      call.key(p.name, values.*p.number, F{}.*p.number);
  });
}

}  // namespace dpt
