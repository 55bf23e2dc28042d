// The table of activations: a name here and its file in activations/ make a layer, an operator and
// its gradient, kernels for CPUs and GPUs, and the line of an exported program.
#pragma once

#include "graph/formulas/activations/celu.h"
#include "graph/formulas/activations/elu.h"
#include "graph/formulas/activations/gelu.h"
#include "graph/formulas/activations/gelu_tanh.h"
#include "graph/formulas/activations/hardshrink.h"
#include "graph/formulas/activations/hardsigmoid.h"
#include "graph/formulas/activations/hardswish.h"
#include "graph/formulas/activations/hardtanh.h"
#include "graph/formulas/activations/leaky_relu.h"
#include "graph/formulas/activations/logsigmoid.h"
#include "graph/formulas/activations/mish.h"
#include "graph/formulas/activations/relu.h"
#include "graph/formulas/activations/relu6.h"
#include "graph/formulas/activations/selu.h"
#include "graph/formulas/activations/sigmoid.h"
#include "graph/formulas/activations/silu.h"
#include "graph/formulas/activations/softplus.h"
#include "graph/formulas/activations/softshrink.h"
#include "graph/formulas/activations/softsign.h"
#include "graph/formulas/activations/tanh.h"
#include "graph/formulas/activations/tanhshrink.h"
#include "graph/formulas/activations/threshold.h"

namespace dpt::formula {

using Activations =
    FormulaList<Relu, LeakyRelu, Elu, Selu, Gelu, GeluTanh, Silu, Sigmoid, Tanh, Softplus,
                Hardswish, Relu6, Mish, Hardtanh, Hardsigmoid, Celu, Softsign, Logsigmoid,
                Hardshrink, Softshrink, Tanhshrink, Threshold>;

template <class A>
inline constexpr int kIndexOf = index_in<A>(Activations{});

}  // namespace dpt::formula
