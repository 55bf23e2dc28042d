// Descriptions of what NVIDIA's libraries compute: matrix products (cuBLASLt), convolutions, norms,
// pooling and attention, and their gradients (cuDNN). A DeviceApi prepares each of them once
// (device_api.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/tensor.h"
#include "base/units.h"
#include "graph/attrs.h"

namespace dpt::cuda {

// Thrown if a library does not support an operation's shapes and types, which is only known by
// asking it; the message is the library's. An own kernel then computes the operation. Any other
// failure of a library is an Error of another kind (library_answer.h).
class NoAlgorithm : public Error {
 public:
  explicit NoAlgorithm(const std::string& why) : Error(Fault::device, why) {}
};

// No work asks for a larger workspace: slower algorithms that need less are taken.
inline constexpr size_t kMatmulWorkspace = 32 * kMiB;
inline constexpr size_t kDnnWorkspace = 256 * kMiB;
inline constexpr size_t kAttentionWorkspace = kGiB;

// What cuBLASLt does to a matrix product before it is stored.
enum class Epilogue : uint8_t {
  none,
  bias,       // adds [n] to each row
  relu,       // max(x, 0)
  bias_relu,  // bias, then relu
  // As above, and stores a bit mask for relu_gradient: [m, 16 bytes for each 128 columns], in a
  // format that only cuBLASLt reads.
  relu_mask,
  bias_relu_mask,
  relu_gradient,  // 0 where the bit mask of the forward product says so
  sums_of_a,      // also computes the sums of op(a) over k: [m]; with dy^T x, the bias gradient
};

constexpr bool has_bias(Epilogue e) {
  return e == Epilogue::bias || e == Epilogue::bias_relu || e == Epilogue::bias_relu_mask;
}
constexpr bool has_relu(Epilogue e) {
  return e != Epilogue::relu_gradient && e >= Epilogue::relu && e < Epilogue::sums_of_a;
}
constexpr bool has_vector(Epilogue e) { return has_bias(e) || e == Epilogue::sums_of_a; }
constexpr bool makes_mask(Epilogue e) {
  return e == Epilogue::relu_mask || e == Epilogue::bias_relu_mask;
}
constexpr bool has_mask(Epilogue e) { return makes_mask(e) || e == Epilogue::relu_gradient; }

constexpr std::string_view text_of(Epilogue e) {
  constexpr std::string_view kAll[] = {"",
                                       " + bias",
                                       ", relu",
                                       " + bias, relu",
                                       ", relu, mask",
                                       " + bias, relu, mask",
                                       ", relu's gradient",
                                       ", sums of a"};
  return kAll[static_cast<size_t>(e)];
}

// d [m, n] = op(a) [m, k] x op(b) [k, n]. Matrices are row-major without gaps; transposed ones are
// stored as [k, m] or [n, k]. Products are summed in f32. tf32: operands may be rounded to TF32 (10
// bits of fraction).
//
// Tensors: a, b, d; with has_vector(), the bias or the sums, in the type of d; with has_mask(), the
// bit mask.
struct Matmul {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType in = DType::f32;   // type of a and b: f32, bf16 or f16
  DType out = DType::f32;  // type of d: f32, or that of a and b
  bool tf32 = false;
  Epilogue epilogue = Epilogue::none;
  int64_t mask_row() const { return (n + 127) / 128 * 16; }  // bytes
  size_t tensors() const {
    return 3U + (has_vector(epilogue) ? 1 : 0) + (has_mask(epilogue) ? 1 : 0);
  }
  bool operator==(const Matmul&) const = default;
};

// x [N, C, H, W], w [O, C / groups, kh, kw], y [N, O, H', W'], all in channels_last: images as [N,
// H, W, C], weights as [O, kh, kw, C / groups]. 1-d convolutions have height 1, 3-d ones a depth
// before it. Sums are in f32 or TF32. Only algorithms that give the same bits in every run are
// used.
//   Tensors: forward x, w, y; with a bias, bias [O] in the type of y. Input gradient: dy, w, dx.
//   Weight gradient: x, dy, dw.
struct DnnConvolution {
  ConvolutionPass pass = ConvolutionPass::forward;
  Shape x, w, y;  // rank 4 or 5, in PyTorch's order
  Window window;
  int64_t groups = 1;
  DType in = DType::f32;  // type of the two tensors that are read
  // Type of the result: that of the two. Weight gradients may be f32, but their values are rounded
  // to the type of the two first, as in PyTorch, since cuDNN does not store others.
  DType out = DType::f32;
  bool tf32 = false;
  bool bias = false, relu = false;  // forward only: y = relu(x * w + bias)
  bool operator==(const DnnConvolution&) const = default;
  size_t tensors() const { return bias ? 4 : 3; }
};

enum class DnnPass : uint8_t { forward, backward };

// What a mean and a variance are computed over, and the shapes of statistics and weights.
enum class NormKind : uint8_t {
  batch,     // each channel over all samples; statistics and weights [C]
  instance,  // each channel of a sample; statistics [N, C], weights [C]
  layer      // each sample; statistics [N], weights [C], x [N, C, 1, 1]
};
// Forward: y = (x - mean) * rstd * w + b with rstd = 1 / sqrt(variance + eps), where mean and
// variance (biased) are those of x. Batch norm may add r [N, C, H, W] to the rounded result and
// then apply relu.
//   Tensors: x, w, b, y, mean, rstd; with `add`: r.
// Backward: all gradients. With relu, dy is replaced by dr = dy where y > 0, else 0. With `sum`, dy
// is the sum of two tensors.
//   Tensors: dy, x, w, mean, rstd, dx, dw, db; with `relu`: y; with `add` (which implies relu): dr;
//   with `sum`: the second dy.
// Images [N, C, H, W] are stored as [N, H, W, C] in `type`; all other tensors are f32.
struct DnnNorm {
  NormKind kind = NormKind::batch;
  DnnPass pass = DnnPass::forward;
  Shape x;  // rank 4
  DType type = DType::f32;
  double eps = 1e-5;  // forward only
  bool add = false, relu = false;
  bool sum = false;  // backward only: dy is the sum of two
  bool operator==(const DnnNorm&) const = default;

  // Rank 4, in PyTorch's order.
  Shape weights() const { return {1, x[1], 1, 1}; }
  Shape moments() const {
    return {kind == NormKind::batch ? 1 : x[0], kind == NormKind::layer ? 1 : x[1], 1, 1};
  }
  // True if tensor i is an image; true if tensor i is a result.
  bool image(size_t i) const {
    return pass == DnnPass::forward ? i == 0 || i == 3 || i == 6 : i < 2 || i == 5 || i > 7;
  }
  bool made(size_t i) const {
    return pass == DnnPass::forward ? i >= 3 && i <= 5 : (i >= 5 && i <= 7) || (add && i == 9);
  }
  size_t tensors() const {
    return pass == DnnPass::forward ? (add ? 7 : 6)
                                    : 8U + (relu ? 1 : 0) + (add ? 1 : 0) + (sum ? 1 : 0);
  }
};

constexpr std::string_view name_of(NormKind kind) {
  constexpr std::string_view kAll[] = {"batch norm", "instance norm", "layer norm"};
  return kAll[static_cast<size_t>(kind)];
}

// The result of a window: its maximum (a nan counts as the largest), the mean of its elements
// inside the image, or the mean that includes the zeros of the padding.
enum class PoolKind : uint8_t { max, mean, mean_with_padding };

// Pooling of x [N, C, H, W] into y [N, C, H', W'], or with depths, all in channels_last.
// Forward: tensors x, y; for max: positions.
// Backward: tensors dy, dx; for max: positions.
// Positions [like y] are bytes: the index within the window and its padding of the first of the
// largest elements.
struct DnnPool {
  PoolKind kind = PoolKind::max;
  DnnPass pass = DnnPass::forward;
  Shape x, y;     // rank 4 or 5
  Window window;  // without dilation; the last window ends in the padding
  DType type = DType::f32;
  bool operator==(const DnnPool&) const = default;
  size_t tensors() const { return kind == PoolKind::max ? 3 : 2; }
};

// softmax(q k^T / sqrt(columns)) v for each sample and head. qkv and dqkv [N, T, 3, heads,
// columns], y and dy [N, T, heads, columns], logsumexp [N, heads, T] of each query's scores in f32.
// Forward: tensors qkv, y, logsumexp.
// Backward: tensors dy, qkv, y, logsumexp, dqkv.
struct DnnAttention {
  DnnPass pass = DnnPass::forward;
  int64_t samples = 0, positions = 0, heads = 0, columns = 0;
  bool causal = false;  // a position only attends to itself and to earlier ones
  DType type = DType::f16;
  size_t workspace = kAttentionWorkspace;  // bytes at most
  bool operator==(const DnnAttention&) const = default;
  size_t tensors() const { return pass == DnnPass::forward ? 3 : 5; }
  bool packed(size_t i) const { return pass == DnnPass::forward ? i == 0 : i == 1 || i == 4; }
};

constexpr std::string_view name_of(PoolKind kind) {
  constexpr std::string_view kAll[] = {"max pooling", "mean pooling", "mean pooling with padding"};
  return kAll[static_cast<size_t>(kind)];
}

}  // namespace dpt::cuda
