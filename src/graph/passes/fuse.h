// Operators that go through the same memory one after the other become one that goes through it
// once. No bit changes.
#pragma once

#include "graph/graph.h"

namespace dpt {

// batch_norm + relu, and batch_norm + add + relu, where nothing else reads what is between.
// REQUIRES: not differentiated yet: the operators that are put in know their gradients.
void fuse(Graph& graph);

// The sum of two gradients, in the pass over the sum. REQUIRES: differentiated.
void fuse_gradients(Graph& graph);

// The sums, the moments and the running statistics of a batch with the norm that they are for, as
// batch_norm_training, and its gradients as batch_norm_backward. REQUIRES: differentiated, where it
// will be; no sums are added to those.
void fuse_batch_norms(Graph& graph);

// What the libraries of GPUs compute at once: linear + relu, and convolution + bias + relu, where
// nothing else reads what is between, relu's gradient with the product before it, and the gradients
// of a linear layer's weight and bias, and those of a layer or group norm. Places of pooling
// become bytes.
// REQUIRES: differentiated, where it will be: relu's gradient needs nothing but its result.
void fuse_products(Graph& graph);

}  // namespace dpt
