// What NVIDIA's libraries are asked to compute, as plain data: a matrix product (cuBLASLt), a
// convolution or one of its gradients, a norm, pooling, attention, and their gradients (cuDNN). A
// DeviceApi prepares each once (device_api.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/tensor.h"
#include "graph/attrs.h"

namespace dpt::cuda {

// Thrown where a library supports no such shapes and types, which it says only when it is asked;
// the message has the library's text. Own kernels compute the operation then. Any other failure of
// a library is an Error of another kind (library_answer.h).
class NoAlgorithm : public Error {
 public:
  explicit NoAlgorithm(const std::string& why) : Error(Fault::device, why) {}
};

// No work asks for a larger workspace: slower algorithms that need less are taken.
inline constexpr size_t kMatmulWorkspace = size_t{32} << 20;
inline constexpr size_t kDnnWorkspace = size_t{256} << 20;
inline constexpr size_t kAttentionWorkspace = size_t{1} << 30;

// What is done to a matrix product while it is in registers.
enum class Epilogue : uint8_t {
  none,
  bias,       // adds [n] to each row
  relu,       // what is below 0 becomes 0
  bias_relu,  // one after the other
  // The same two; also keeps bits for relu_gradient, [m, 16 bytes for each 128 of n], which nobody
  // else understands.
  relu_mask,
  bias_relu_mask,
  relu_gradient,  // where bits of such a product of [m, n] say so, 0
  sums_of_a,      // also makes the sums of op(a) over k, [m]: with dy^T x the gradient of the bias
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
  constexpr std::string_view all[] = {"",
                                      " + bias",
                                      ", relu",
                                      " + bias, relu",
                                      ", relu, mask",
                                      " + bias, relu, mask",
                                      ", relu's gradient",
                                      ", sums of a"};
  return all[static_cast<size_t>(e)];
}

// d [m, n] = op(a) [m, k] times op(b) [k, n]. Matrices lie row-major without gaps; a transposed one
// lies as [k, m] or [n, k]. Sums are made in f32, or of numbers rounded to TF32 (10 bits of
// fraction) where that is asked for.
// Tensors: a, b, d; then the bias or the sums where the epilogue has_vector, of the type of d; then
// the bits where it has_mask.
struct Matmul {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType in = DType::f32;   // of a and b: f32, bf16, f16
  DType out = DType::f32;  // of d: f32, or that of a and b
  bool tf32 = false;
  Epilogue epilogue = Epilogue::none;
  int64_t mask_row() const { return (n + 127) / 128 * 16; }  // in bytes
  size_t tensors() const {
    return 3U + (has_vector(epilogue) ? 1 : 0) + (has_mask(epilogue) ? 1 : 0);
  }
  bool operator==(const Matmul&) const = default;
};

enum class ConvolutionPass : uint8_t {
  forward,          // tensors: x, w, y; then the bias [O] where there is one, of the type of y
  input_gradient,   // tensors: dy, w, dx
  weight_gradient,  // tensors: x, dy, dw
};

// x [N, C, H, W], w [O, C / groups, kh, kw], y [N, O, H', W'], all lying channels_last: an image as
// [N, H, W, C], a weight as [O, kh, kw, C / groups]. Of [N, C, W] the height is 1. Sums in f32 or
// TF32; always an algorithm that gives the same bits each time.
struct DnnConvolution {
  ConvolutionPass pass = ConvolutionPass::forward;
  Shape x, w, y;  // in torch's order, of rank 4
  Window window;
  int64_t groups = 1;
  DType in = DType::f32;  // of the two tensors that are read
  // Of the one that is made: that of the two; a weight gradient's may be f32, of numbers that were
  // rounded to the type of the two, as PyTorch's are, since cuDNN stores no others.
  DType out = DType::f32;
  bool tf32 = false;
  bool bias = false, relu = false;  // forward only: y = relu(x * w + bias)
  bool operator==(const DnnConvolution&) const = default;
  size_t tensors() const { return bias ? 4 : 3; }
};

enum class DnnPass : uint8_t { forward, backward };

// What a mean and a deviation are of, and what they and the weights go along.
enum class NormKind : uint8_t {
  batch,     // a channel of all samples; mean, deviation and weights [C]
  instance,  // a channel of a sample: [N, C]; weights [C]
  layer      // a sample: [N]; weights [C], x [N, C, 1, 1]
};
// Forward: y = (x - mean) * w * rstd + b with rstd = 1 / sqrt(variance + eps), mean and biased
// variance of x. Batch norm only: + r, to what was rounded to the type, and relu, where asked for.
//   Tensors: x, w, b, y, mean, rstd; then r where it adds.
// Backward: the gradients of all that. Batch norm only: behind relu those of dy, or of the sum of
// two, where y is above 0, which is dr.
//   Tensors: dy, x, w, mean, rstd, dx, dw, db; then y behind relu; then dr where r was added, which
//   relu follows; then the second dy where there are two.
// Images [N, C, H, W] lie as [N, H, W, C]; all others are f32.
struct DnnNorm {
  NormKind kind = NormKind::batch;
  DnnPass pass = DnnPass::forward;
  Shape x;  // of rank 4
  DType type = DType::f32;
  double eps = 1e-5;  // forward only
  bool add = false, relu = false;
  bool sum = false;  // backward only: dy is the sum of two
  bool operator==(const DnnNorm&) const = default;

  // In torch's order, of rank 4.
  Shape weights() const { return {1, x[1], 1, 1}; }
  Shape moments() const {
    return {kind == NormKind::batch ? 1 : x[0], kind == NormKind::layer ? 1 : x[1], 1, 1};
  }
  // The images among the tensors, and what is made.
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
  constexpr std::string_view all[] = {"batch norm", "instance norm", "layer norm"};
  return all[static_cast<size_t>(kind)];
}

// What is made of a window: its largest element, nan before all, or the mean of what it has in the
// image, or of that and the zeros of the padding.
enum class PoolKind : uint8_t { max, mean, mean_with_padding };

// Windows of x [N, C, H, W] make y [N, C, H', W'], all lying channels_last.
// Forward. Tensors: x, y; then, of max, places.
// Backward. Tensors: dy, dx; then, of max, places.
// Places are bytes as y lies: row * kernel[1] + column in the window with its padding, of the first
// of the largest.
struct DnnPool {
  PoolKind kind = PoolKind::max;
  DnnPass pass = DnnPass::forward;
  Shape x, y;     // of rank 4
  Window window;  // without dilation, ending where its padding ends
  DType type = DType::f32;
  bool operator==(const DnnPool&) const = default;
  size_t tensors() const { return kind == PoolKind::max ? 3 : 2; }
};

// softmax(q k^T / sqrt(columns)) v of each sample and head; qkv and dqkv [N, T, 3, heads, columns],
// y and dy [N, T, heads, columns]; logsumexp [N, heads, T] in f32, over the scores of a place.
// Forward. Tensors: qkv, y, logsumexp. Backward. Tensors: dy, qkv, y, logsumexp, dqkv.
struct DnnAttention {
  DnnPass pass = DnnPass::forward;
  int64_t samples = 0, places = 0, heads = 0, columns = 0;
  bool causal = false;  // a place sees itself and those before it
  DType type = DType::f16;
  size_t workspace = kAttentionWorkspace;  // bytes at most
  bool operator==(const DnnAttention&) const = default;
  size_t tensors() const { return pass == DnnPass::forward ? 3 : 5; }
  bool packed(size_t i) const { return pass == DnnPass::forward ? i == 0 : i == 1 || i == 4; }
};

constexpr std::string_view name_of(PoolKind kind) {
  constexpr std::string_view all[] = {"max pooling", "mean pooling", "mean pooling with padding"};
  return all[static_cast<size_t>(kind)];
}

}  // namespace dpt::cuda
