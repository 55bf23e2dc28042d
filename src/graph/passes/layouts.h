// In which order each value of a graph lies in memory.
#pragma once

#include "graph/graph.h"

namespace dpt {

// Images lie channels_last, and transposed the weights of convolutions and of linear layers that
// get data, with their gradients; `reorder` nodes stand where a node takes its values in another
// layout. What is chosen for a parameter depends on its shape and use alone, so that all graphs of
// a model agree.
//
// Note [channels last]: oneDNN's single-threaded convolutions of ResNet-50 in blocked layouts take
// 143 to 148 ms an image, forward and backward; channels_last 151; plain 207. So images have the
// layout in which every other operator is a loop over rows, and nothing is padded. Its preferred
// layouts of weights differ between a convolution and its gradients; from transposed ones it makes
// them in 1.4 % of a step of eight images (from torch's in 3.7 %).
//
// On GPUs cuDNN's fast convolutions want weights channels_last as well, and
// cuBLASLt reads each matrix either way, so those of linear layers stay plain.
enum class WeightLayouts { transposed, channels_last };

// REQUIRES: differentiated, where it will be.
void choose_layouts(Graph& graph, WeightLayouts weights = WeightLayouts::transposed);

}  // namespace dpt
