// One optimizer step as scalars: the arguments of its formula that are equal for all elements.
// Optimizers compute them in double from their settings, the step number and the learning rate. A
// back end visits the variant and applies the formula to its range of the flat buffers.
#pragma once

#include <variant>

#include "graph/formulas/optimizer.h"

namespace dpt {

using OptimizerStep =
    std::variant<formula::Sgd<double>, formula::Adam<double>, formula::RmsProp<double>,
                 formula::Adagrad<double>, formula::Adadelta<double>>;

// The scalars in the type of the weights, each rounded once, as PyTorch does with Python numbers.
template <class T>
formula::Sgd<T> rounded(const formula::Sgd<double>& s) {
  return {.lr = T(s.lr),
          .momentum = T(s.momentum),
          .one_minus_dampening = T(s.one_minus_dampening),
          .weight_decay = T(s.weight_decay),
          .nesterov = s.nesterov,
          .maximize = s.maximize,
          .first_step = s.first_step};
}

template <class T>
formula::Adam<T> rounded(const formula::Adam<double>& s) {
  return {.step_size = T(s.step_size),
          .one_minus_beta1 = T(s.one_minus_beta1),
          .beta2 = T(s.beta2),
          .one_minus_beta2 = T(s.one_minus_beta2),
          .inverse_correction = T(s.inverse_correction),
          .eps = T(s.eps),
          .weight_decay = T(s.weight_decay),
          .keep = T(s.keep),
          .amsgrad = s.amsgrad,
          .maximize = s.maximize};
}

template <class T>
formula::RmsProp<T> rounded(const formula::RmsProp<double>& s) {
  return {.lr = T(s.lr),
          .alpha = T(s.alpha),
          .one_minus_alpha = T(s.one_minus_alpha),
          .eps = T(s.eps),
          .momentum = T(s.momentum),
          .weight_decay = T(s.weight_decay),
          .centered = s.centered,
          .maximize = s.maximize};
}

template <class T>
formula::Adagrad<T> rounded(const formula::Adagrad<double>& s) {
  return {
      .clr = T(s.clr), .eps = T(s.eps), .weight_decay = T(s.weight_decay), .maximize = s.maximize};
}

template <class T>
formula::Adadelta<T> rounded(const formula::Adadelta<double>& s) {
  return {.lr = T(s.lr),
          .rho = T(s.rho),
          .one_minus_rho = T(s.one_minus_rho),
          .eps = T(s.eps),
          .weight_decay = T(s.weight_decay),
          .maximize = s.maximize};
}

}  // namespace dpt
