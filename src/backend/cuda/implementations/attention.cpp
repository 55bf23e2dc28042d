// The GPU implementations of attention: cuDNN's for halves, own kernels otherwise.
#include "backend/cuda/kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/descriptions.h"
#include "backend/cuda/interface/launch.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

const TensorDesc& qkv_of(const KernelQuery& q) { return q.in[is_gradient(q) ? 1 : 0]; }

AttentionShape shape_of(const KernelQuery& q) {
  const auto s = settings<Attention>(q);
  const Shape& x = qkv_of(q).shape;
  const int64_t columns = x[2] / 3 / s.heads;
  return {.samples = x[0],
          .positions = x[1],
          .heads = s.heads,
          .columns = columns,
          .causal = s.causal,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(columns)))};
}

std::string refuses(const KernelQuery& q) {
  const DType t = qkv_of(q).dtype;
  if (t != DType::f32 && !is_half(t)) return fmt::format("it takes no {}", name_of(t));
  const TensorDesc& logsumexp = is_gradient(q) ? q.in[3] : q.out[1];
  if (logsumexp.dtype != DType::f32) return "it keeps the sums of softmax in f32";
  for (const auto* side : {&q.in, &q.out})
    for (const TensorDesc& d : *side)
      if (&d != &logsumexp && d.dtype != t) return "it takes one type";
  return "";
}

std::string library_refuses(const KernelQuery& q) {
  if (std::string reason = refuses(q); !reason.empty()) return reason;
  const TensorDesc& x = qkv_of(q);
  if (!is_half(x.dtype)) return fmt::format("it takes bf16 and f16, not {}", name_of(x.dtype));
  if (count(x) == 0) return "it takes no empty tensors";
  const int64_t columns = shape_of(q).columns;
  if (columns % 8 != 0 || columns > 128)
    return fmt::format("it takes heads of 8, 16, ... 128 columns, not {}", columns);
  return is_gradient(q) && x.shape[1] == 1 ? "it makes no gradient of a single position" : "";
}

std::unique_ptr<Kernel> own_forward(const KernelQuery& q) {
  const AttentionShape s = shape_of(q);
  return with_number(qkv_of(q).dtype, [&]<class T>(T) {
    return enqueue([s](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, AttentionForward<T>{s, at<T>(a.in[0]), at<T>(a.out[0]), at<float>(a.out[1])},
             s.blocks());
    });
  });
}

std::unique_ptr<Kernel> own_gradient(const KernelQuery& q) {
  const AttentionShape s = shape_of(q);
  DeviceContext::current().reserve(static_cast<size_t>(s.rows()) * sizeof(float));
  return with_number(qkv_of(q).dtype, [&]<class T>(T) {
    return enqueue([s](const KernelArgs& a, DeviceContext& c) {
      const T *dy = at<T>(a.in[0]), *qkv = at<T>(a.in[1]), *y = at<T>(a.in[2]);
      auto* const dots = reinterpret_cast<float*>(c.workspace);
      launch(c.stream, AttentionDots<T>{s, dy, y, dots}, s.rows());
      const AttentionOperands<T> in{dy, qkv, at<float>(a.in[3]), dots};
      launch(c.stream, AttentionQueryGradient<T>{s, in, at<T>(a.out[0])}, s.blocks());
      launch(c.stream, AttentionKeyGradient<T>{s, in, at<T>(a.out[0])}, s.blocks());
    });
  });
}

std::unique_ptr<Kernel> own_kernel(const KernelQuery& q) {
  return is_gradient(q) ? own_gradient(q) : own_forward(q);
}

// Note [pieces]: what keeps the bits of a gradient the same is a half for each score, N * heads *
// T^2 of them, where cuDNN sums the gradient of q by way of memory (compute 9.0).
// Where that is too much the gradient is made of some samples at a time, by one plan; the last
// piece may begin in the one before, whose results it makes again. A single sample that is still
// too large gets more memory where the GPU has much.

// Places are padded as the kernels' tiles are.
size_t score_bytes(const DnnAttention& a) {
  const auto padded = [&](int64_t tile) { return (a.positions + tile - 1) / tile * tile; };
  return static_cast<size_t>(a.heads * padded(64) * padded(128)) * 2;
}

// Whether all pieces of so many samples begin where cuDNN may: all but the sums of softmax do.
bool aligned_pieces(const DnnAttention& whole, int64_t samples) {
  constexpr int64_t kAlignment = 16;
  const auto sums = whole.heads * whole.positions * static_cast<int64_t>(sizeof(float));
  return samples * sums % kAlignment == 0 && (whole.samples - samples) * sums % kAlignment == 0;
}

// The plan for pieces of the batch, and how many samples they have; no work: there is none.
std::pair<DeviceContext::Prepared, int64_t> prepared_piece(const DnnAttention& whole,
                                                           DeviceContext& context) {
  const size_t each = score_bytes(whole);
  DnnAttention piece = whole;
  if (each > piece.workspace)
    piece.workspace = std::max(piece.workspace, context.api.properties().memory / 16);
  const auto most = std::max<size_t>(1, whole.workspace / each);
  for (piece.samples = std::min(whole.samples, static_cast<int64_t>(most)); piece.samples > 0;
       --piece.samples) {
    if (!aligned_pieces(whole, piece.samples)) continue;
    if (const DeviceContext::Prepared made = context.prepared(piece); made.work)
      return {made, piece.samples};
    piece.samples = piece.samples / 2 + 1;  // and one less
  }
  return {};
}

std::unique_ptr<Kernel> library(const KernelQuery& q) {
  DeviceContext& context = DeviceContext::current();
  DnnAttention d = attention_of(q);
  d.workspace = context.attention_workspace;
  DeviceContext::Prepared prepared = context.prepared(d);
  const int64_t whole = d.samples;
  int64_t samples = whole;
  if (!prepared.work) {
    const std::string why = prepared.why;
    const bool large = static_cast<size_t>(whole) * score_bytes(d) > d.workspace;
    if (is_gradient(q) && large) std::tie(prepared, samples) = prepared_piece(d, context);
    if (!prepared.work) {
      context.fall_back(why + "; dptrain's own kernels compute it");
      return own_kernel(q);
    }
  }
  return enqueue([work = prepared.work, whole, samples](const KernelArgs& a, DeviceContext& c) {
    for (int64_t next = 0; next < whole; next += samples) {
      const int64_t first = std::min(next, whole - samples);
      std::array<std::byte*, 5> tensors{};
      size_t n = 0;
      for (const auto side : {a.in, a.out})
        for (const TensorView& v : side)
          tensors[n++] =
              v.data + v.desc.bytes() / static_cast<size_t>(whole) * static_cast<size_t>(first);
      c.stream.run(*work, std::span(tensors).first(n), c.workspace);
    }
  });
}

}  // namespace

DnnAttention attention_of(const KernelQuery& q) {
  const AttentionShape s = shape_of(q);
  return {.pass = is_gradient(q) ? DnnPass::backward : DnnPass::forward,
          .samples = s.samples,
          .positions = s.positions,
          .heads = s.heads,
          .columns = s.columns,
          .causal = s.causal,
          .type = qkv_of(q).dtype};
}

std::vector<KernelType> attention_rows() {
  std::vector<KernelType> out;
  for (std::string_view op : {"attention", "attention_gradient"}) {
    out.push_back({.op = op, .name = "cudnn", .refuses = library_refuses, .prepare = library});
    out.push_back(own(op, refuses, own_kernel));
  }
  return out;
}

}  // namespace dpt::cuda
