// One optimizer step as scalars: the arguments of its formula that are equal for all elements.
// Optimizers compute them in double from their settings, the step number and the learning rate. A
// back end visits the variant and applies the formula to its range of the flat buffers.
#pragma once

#include <variant>

#include "graph/formulas/optimizers.h"

namespace dpt {

template <template <class> class... F>
std::variant<F<double>...> step_of(formula::OptimizerList<F...>);

// A type of its own, which headers can declare without the formulas.
struct OptimizerStep : decltype(step_of(formula::Optimizers{})) {
  using variant::variant;
};

// The scalars in the type of the weights, each rounded once, as PyTorch does with Python numbers.
template <class T, class Formula>
auto rounded(const Formula& s) {
  return s.template rounded<T>();
}

}  // namespace dpt
