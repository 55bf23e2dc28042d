// Chooses the memory layout of each value of a graph.
#pragma once

#include "graph/graph.h"

namespace dpt {

// Images become channels_last. Weights of convolutions, and of linear layers whose input needs no
// gradient, become transposed, with their gradients. Where a node needs a value in another layout,
// a `reorder` node is inserted. A parameter's layout depends only on its shape and use, so all
// graphs of a model agree on it.
//
// Note [channels last]: oneDNN's single-threaded convolutions of ResNet-50 take 143 to 148 ms per
// image (forward and backward) in blocked layouts, 151 ms in channels_last and 207 ms in plain. In
// channels_last all other operators are loops over rows, and nothing is padded. oneDNN's preferred
// weight layouts differ between a convolution and its gradients; reordering into them takes 1.4 %
// of a step of eight images from transposed weights, and 3.7 % from PyTorch's layout.
//
// On GPUs, cuDNN's fast convolutions need channels_last weights, and cuBLASLt reads matrices in
// either order, so the weights of linear layers stay plain.
enum class WeightLayouts { transposed, channels_last };

// REQUIRES: differentiated, if the graph is going to be.
void choose_layouts(Graph& graph, WeightLayouts weights = WeightLayouts::transposed);

}  // namespace dpt
