// The table of optimizer formulas: a name here and its file in optimizers/ make the update loops of
// CPUs and GPUs.
#pragma once

#include "graph/formulas/optimizers/adadelta.h"
#include "graph/formulas/optimizers/adagrad.h"
#include "graph/formulas/optimizers/adam.h"
#include "graph/formulas/optimizers/adamax.h"
#include "graph/formulas/optimizers/asgd.h"
#include "graph/formulas/optimizers/lion.h"
#include "graph/formulas/optimizers/muon.h"
#include "graph/formulas/optimizers/n_adam.h"
#include "graph/formulas/optimizers/r_adam.h"
#include "graph/formulas/optimizers/rms_prop.h"
#include "graph/formulas/optimizers/rprop.h"
#include "graph/formulas/optimizers/sgd.h"

namespace dpt::formula {

template <template <class> class... F>
struct OptimizerList {
  static constexpr int kSize = sizeof...(F);
};

using Optimizers = OptimizerList<Sgd, Adam, RmsProp, Adagrad, Adadelta, Adamax, NAdam, RAdam, Rprop,
                                 Asgd, Lion, Muon>;

// Index of a formula, such as Sgd<float>, in the table.
template <template <class> class A, class T, template <class> class... F>
constexpr int optimizer_index(const A<T>*, OptimizerList<F...>) {
  int at = 0;
  (void)((__is_same(A<T>, F<T>) || (++at, false)) || ...);
  return at;
}
template <class Formula>
inline constexpr int kOptimizerOf = optimizer_index(static_cast<const Formula*>(nullptr),
                                                    Optimizers{});

}  // namespace dpt::formula
