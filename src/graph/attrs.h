// The settings of operators that have some, as GraphBuilder::apply takes them and kernels read
// them. Operators that are not here take none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/tensor.h"

namespace dpt {

struct LeakyRelu {
  double negative_slope = 0.01;
};
struct PRelu {
  int64_t parameters = 1;  // prelu_weight_gradient: of the weight
};
struct ReluMask {     // matmul_relu_gradient: of the product that made the mask
  int64_t depth = 1;  // the last extent of its x
  bool bias = false;
};
struct Elu {
  double alpha = 1;
};
struct Gelu {
  bool tanh = false;  // approximate='tanh'
};
struct Softplus {
  double beta = 1, threshold = 20;
};
struct Softmax {
  int dim = 1;  // counted from 0, the sample's extent included; never 0
};
struct LayerNorm {
  int dims = 1;  // how many of the last extents are normalised over
  double eps = 1e-5;
};
struct Attention {
  int64_t heads = 1;
  bool causal = false;  // a place sees itself and those before it
};
struct Dropout {
  double p = 0.5;
  uint64_t key = 0;  // tells the dropout layers of a model apart
};
struct Masked {
  double scale = 1;             // y = x * (mask * scale)
  std::vector<int> order = {};  // of x's extents in torch's memory, in which torch draws the
                                // mask (torch_order.h)
};
struct Embedding {
  int64_t padding_idx = -1;  // the row without a gradient; -1: none
  int64_t rows = 0;          // embedding_gradient: extent 0 of the weight
};
struct PositionEmbedding {
  int64_t rows = 0;  // position_embedding_gradient: extent 0 of the weight
};
struct Reshape {
  Shape shape;  // the whole result, the sample's extent included
};
struct Reorder {
  Layout layout = Layout::plain;  // of the result
};
struct Cast {
  DType dtype = DType::f32;  // of the result; round_to: whose numbers
};
struct Concat {
  int dim = 1;
};
struct SliceOf {  // extents begin..begin+length of one dimension
  int dim = 1;
  int64_t begin = 0, length = 0;
  int64_t extent = 0;  // slice_gradient: of the whole dimension
};

// Of values [N, C, W] or [N, C, H, W], as pairs of height and width; [N, C, W] has the height 1.
using Pair = std::array<int64_t, 2>;

// How a window goes over an image. Padding is in front of and behind each extent.
struct Window {
  Pair kernel{1, 1}, stride{1, 1}, dilation{1, 1}, before{0, 0}, behind{0, 0};
  bool operator==(const Window&) const = default;
};
struct Convolution {
  Window window;
  int64_t groups = 1;
  Pair output_padding{0, 0};  // convolution_transpose: further extents of the result
};
struct Pool {
  Window window;
  bool ceil_mode = false;
  bool count_include_pad = true;  // avg_pool
  int64_t divisor_override = 0;   // avg_pool; 0: none
  Pair extents{0, 0};             // gradients: of x
};
struct Resize {
  Pair extents{0, 0};  // of the result
  // upsample_nearest: torch's scale_factor, which decides the source; 0: result / input
  std::array<double, 2> scale{0, 0};
};
struct GroupNorm {
  int64_t groups = 1;
  double eps = 1e-5;
};
struct BatchNorm {
  double eps = 1e-5;
  double momentum =
      0.1;            // update_running: the part of the new batch; -1: all batches count the same
  bool batch = true;  // the moments are those of the batch
  // batch_norm_add_relu: the half to which each operator that it stands for rounds what it makes
  DType between = DType::f32;
};
struct Pad {  // of each dimension in front and behind; negative: cut off
  std::array<int64_t, Shape::kMaxRank> before{}, behind{};
  double value = 0;
};

// Between stages of a graph (graph.h, note [stages]): where the value lies, and where it goes.
struct Copy {
  int from = 0, to = 0;
};

// Losses. Inputs: output, target, divisor f32[1] and, where there is one, the constant with
// weights.
struct CrossEntropy {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  int dim = 1;  // of the classes
};
struct NllLoss {
  int64_t ignore_index = -100;
  int dim = 1;  // of the classes; target_weight: not looked at
};
struct CountCorrect {
  int dim = 1;  // of the classes
  int64_t ignore_index = -100;
};
struct SmoothL1 {
  double beta = 1;
};
struct Huber {
  double delta = 1;
};
struct BceWithLogits {
  bool weight = false, pos_weight = false;  // which constants follow the divisor, in this order
};
struct KlDiv {
  bool log_target = false;
};

}  // namespace dpt
