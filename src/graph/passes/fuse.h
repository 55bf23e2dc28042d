// Operator fusion: operators that pass over the same memory one after the other become one operator
// with one pass. Results keep their bits.
#pragma once

#include "graph/graph.h"

namespace dpt {

// batch_norm + relu, and batch_norm + add + relu, as attributes of batch_norm, if no other node
// reads the intermediate values. REQUIRES: not yet differentiated; the fused operators bring their
// own gradients.
void fuse(Graph& graph);

// Computes the sum of two gradients in the operator that reads the sum. REQUIRES: differentiated.
void fuse_gradients(Graph& graph);

// Joins channel_sums, all_reduce, moments and update_running with the norm that uses them
// (batch_norm{training}), and likewise the gradients (batch_norm_backward). REQUIRES:
// differentiated, if the graph is going to be; the sums of a shard are not added to those of
// others.
void fuse_batch_norms(Graph& graph);

// Fusions that GPU libraries offer: linear + relu, convolution + bias + relu, a relu gradient with
// the product before it, a linear layer's weight and bias gradients, and all gradients of a layer
// or group norm. Intermediate values must have no other reader. Also stores the indices of max
// pooling as bytes. REQUIRES: differentiated, if the graph is going to be: relu's gradient then
// needs only its result.
void fuse_products(Graph& graph);

}  // namespace dpt
