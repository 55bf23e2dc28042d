// The graph of a model as evaluations compute it, without the loss.
#pragma once

#include <cstdint>
#include <span>

#include "graph/graph.h"
#include "graph/passes/passes.h"
#include "spec/spec.h"

namespace dpt {

// Builds the graph of spec.model for `samples` inputs of this type and shape (without the batch):
// running statistics, no dropout, one stage, float32. passes, kernels: those of a back end; empty:
// the operators are those that the layers build. Throws Error{spec} if shapes do not fit, and if a
// sample's output would depend on the other samples of its batch, as with batch norm without
// running statistics.
Graph evaluation_graph(const Spec& spec, const TensorDesc& sample, int64_t samples,
                       std::span<const Pass> passes = {}, std::span<const KernelType> kernels = {});

}  // namespace dpt
