// What each ONNX operator is in dptrain. ONNX has no batch; where a node works along its first
// extent, the whole tensor is one sample here.
#pragma once

#include <vector>

#include "onnx/net.h"

namespace dpt::onnx {

// What dptrain gives for a case, beside what the onnx package says. Throws Inexpressible; or
// Error{spec}, where dptrain itself says why it does not take such a node.
std::vector<Comparison> run_case(const Case& c);

// The training operators of ai.onnx.preview.training, by the CPU's update kernels.
std::vector<Comparison> run_training_case(const Case& c);

// Convolutions, pooling, norms and what else works on images.
std::vector<Comparison> run_image_case(const Case& c);

}  // namespace dpt::onnx
