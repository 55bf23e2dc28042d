// Attributes of operators: the structs that GraphBuilder::apply() takes as `attrs` and kernels
// read. Those of an activation and of a loss in formulas/losses/ are the struct of its formula
// (formulas/activations/, formulas/losses/). Another operator without a struct here has no
// attributes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/tensor.h"
#include "graph/formulas/resample.h"

namespace dpt {

struct PRelu {
  int64_t parameters = 1;  // prelu_weight_gradient: elements of the weight
};
struct ReluMask {     // matmul_relu_gradient: about the linear layer that wrote the mask
  int64_t depth = 1;  // its in_features
  bool bias = false;
};
struct Softmax {
  int dim = 1;  // dimension, counted from 0 with the batch dimension included; never 0
};
struct Glu {
  int dim = 1;  // dimension that is halved
};
struct Permute {
  // Dimension i of the result is dimension order[i] of x. order[0] = 0: the batch stays in front.
  std::array<int, Shape::kMaxRank> order{0, 1, 2, 3, 4, 5};
};
struct RowNorm {
  int dims = 1;        // how many of the last dimensions make a row; the weight has their shape
  int64_t groups = 0;  // > 0: instead, rows are groups of the channels of [N, C, ...]; weight [C]
  bool center = true;  // subtract the mean; false: RMS norm
  double eps = 1e-5;
};
struct Attention {
  int64_t heads = 1;
  bool causal = false;  // each position attends only to itself and earlier positions
};
struct Dropout {
  double p = 0.5;
  uint64_t key = 0;       // number of the dropout layer, so that each layer draws its own mask
  bool channels = false;  // all elements of a channel of [N, C, ...] are kept, or none
};
struct Masked {
  double scale = 1;  // y = x * (mask * scale)
  // Dimensions of x, outermost first, in PyTorch's memory order; PyTorch draws the mask in this
  // order (graph/passes/torch_order.h)
  std::vector<int> order = {};
};
struct Embedding {
  int64_t padding_idx = -1;  // row of the weight that gets no gradient; -1: none
  int64_t rows = 0;          // embedding_gradient: rows of the weight
};
struct PositionEmbedding {
  int64_t rows = 0;  // position_embedding_gradient: rows of the weight
};
struct Reshape {
  Shape shape;  // full shape of the result, batch dimension included
};
struct Reorder {
  Layout layout = Layout::plain;  // of the result
};
struct Cast {
  DType dtype = DType::f32;  // dtype of the result; round_to: the half to round to
};
struct Concat {
  int dim = 1;
};
struct SliceOf {  // elements [begin, begin + length) of dimension `dim`
  int dim = 1;
  int64_t begin = 0, length = 0;
  int64_t extent = 0;  // slice_gradient: extent of the whole dimension
};

// {depth, height, width}. Values [N, C, W] are treated as [N, C, 1, 1, W], and [N, C, H, W] as
// [N, C, 1, H, W].
using Extents = std::array<int64_t, 3>;

// A sliding window. `before` and `behind` are the padding at the start and the end of each extent.
struct Window {
  Extents kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, before{}, behind{};
  bool operator==(const Window&) const = default;
};
struct Convolution {
  Window window;
  int64_t groups = 1;
  Extents output_padding{};  // convolution_transpose: added to the result's extents
};
// Which of the x, w and y of y = convolution(x, w) an operator computes: y, x or w.
enum class ConvolutionPass : uint8_t { forward, input_gradient, weight_gradient };
struct Pool {
  Window window;
  bool ceil_mode = false;
  bool count_include_pad = true;  // avg_pool
  int64_t divisor_override = 0;   // avg_pool; 0: none
  Extents extents{};              // gradients: extents of x
};
struct Resize {
  Extents extents{};  // extents of the result
  // upsample_nearest: PyTorch's scale_factor, from which source indices are computed; 0: use result
  // / input
  std::array<double, 3> scale{};
  bool align_corners = false;  // upsample_bilinear, upsample_bicubic
  bool exact = false;          // upsample_nearest: PyTorch's mode nearest-exact
};
struct BatchNorm {
  double eps = 1e-5;
  double momentum =
      0.1;            // update_running: weight of the new batch's moments; -1: cumulative average
  bool batch = true;  // normalize with the batch's moments; else with the running statistics
  // What the operator does in the same pass (graph/passes/fuse.h): it adds another value to the
  // result, applies relu, and computes the moments of the batch itself. REQUIRES: relu, if add.
  bool add = false, relu = false, training = false;
  // add: the half to which the results of the replaced batch_norm and add are rounded; f32: no
  // rounding
  DType between = DType::f32;
};
struct Pad {  // elements added before and after each dimension; negative: removed
  std::array<int64_t, Shape::kMaxRank> before{}, behind{};
  double value = 0;
  using Mode = formula::PadFrom;
  Mode mode = Mode::reflect;  // pad_inside
};

// Copies a value from the memory of stage `from` to that of stage `to` (graph.h, Note [stages]).
struct Copy {
  int from = 0, to = 0;
};

// Losses. Inputs: output, target, divisor f32[1], then the constants with weights if there are any.
struct CrossEntropy {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  int dim = 1;  // dimension of the classes
};
struct NllLoss {
  int64_t ignore_index = -100;
  int dim = 1;       // dimension of the classes; target_weight ignores it
  double gamma = 0;  // factor (1 - p)^gamma of focal_loss, where p is the target's probability
};
struct Dice {
  double smooth = 1e-5;  // added to numerator and denominator
  double share = 1;      // factor of each channel's term
};
struct CountCorrect {
  int dim = 1;  // dimension of the classes
  int64_t ignore_index = -100;
};
struct CosineEmbedding {
  double margin = 0;
};
struct Ctc {
  int64_t blank = 0;            // class of the blank label
  int64_t ignore_index = -100;  // ends a target sequence
  bool zero_infinity = false;
  bool by_length = true;  // divides a sample's loss by the length of its target
};
struct TripletMargin {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
};
struct MultiMargin {
  int p = 1;  // 1 or 2
  double margin = 1;
};

}  // namespace dpt
