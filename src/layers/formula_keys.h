// The parameters of a formula (graph/formulas/parameter.h) as keys of a spec.
#pragma once

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

}  // namespace dpt
