// The CPU implementations of activations, losses, dropout, and operators that only move elements.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/support.h"
#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/formulas/philox.h"

namespace dpt {
namespace {

const ElementwiseKernels& simd() {
  static const ElementwiseKernels& kernels = elementwise_simd(simd_kernels().isa);
  return kernels;
}

std::string refuses(const KernelQuery& q) {
  for (const TensorDesc& d : q.in)
    if (d.dtype != DType::i32 && d.dtype != DType::u8)
      if (std::string reason = not_f32(d); !reason.empty()) return reason;
  return "";
}

// Activations.

// All floating-point tensors are f32, or all bf16 in 16 bits.
std::string refuses_activation(const KernelQuery& q) {
  const DType type = q.in[0].dtype == DType::bf16 ? DType::bf16 : DType::f32;
  for (const auto* side : {&q.in, &q.out})
    for (const TensorDesc& d : *side)
      if (std::string reason = not_of_type(d, type); !reason.empty()) return reason;
  return "";
}

// Calls f(args, begin, count) for parts of n elements of the first result. If the query asks for
// rounding, parts are so small that they are rounded in the first-level cache.
template <class F>
std::unique_ptr<Kernel> in_parts(const KernelQuery& q, size_t n, F f) {
  constexpr size_t kPart = 2048;
  if (q.rounds == DType::f32) return call([=](const KernelArgs& a) { f(a, size_t{0}, n); });
  return call([=, round = rounding(q.rounds)](const KernelArgs& a) {
    float* const y = data(a.out[0]);
    for (size_t i = 0; i < n; i += kPart) {
      const size_t count = std::min(kPart, n - i);
      f(a, i, count);
      round(y + i, y + i, count);
    }
  });
}

struct Scalars {
  float s[2] = {};
};

template <class F>
Scalars parameters_of(const KernelQuery& q) {
  Scalars out;
  formula::each_parameter<F>([&, values = settings<F>(q), to = out.s](const auto& p) mutable {
    *to++ = static_cast<float>(values.*p.number);
  });
  return out;
}

template <class F>
std::unique_ptr<Kernel> prepare_activation(const KernelQuery& q) {
  const size_t n = elements(q.out[0]);
  const Scalars s = parameters_of<F>(q);
  if (q.in[0].dtype == DType::bf16)
    return call([f = simd().bf16.activation[formula::kIndexOf<F>], n, s](const KernelArgs& a) {
      f(a.in[0].as<const uint16_t>().data(), a.out[0].as<uint16_t>().data(), n, s.s);
    });
  return in_parts(q, n,
                  [f = simd().activation[formula::kIndexOf<F>], s](const KernelArgs& a,
                                                                   size_t begin, size_t count) {
                    f(data(a.in[0]) + begin, data(a.out[0]) + begin, count, s.s);
                  });
}

template <class F>
std::unique_ptr<Kernel> prepare_activation_gradient(const KernelQuery& q) {
  const size_t n = elements(q.out[0]);
  const Scalars s = parameters_of<F>(q);
  if (q.in[0].dtype == DType::bf16)
    return call(
        [f = simd().bf16.activation_gradient[formula::kIndexOf<F>], n, s](const KernelArgs& a) {
          f(a.in[0].as<const uint16_t>().data(), a.in[1].as<const uint16_t>().data(),
            a.out[0].as<uint16_t>().data(), n, s.s);
        });
  return in_parts(q, n,
                  [f = simd().activation_gradient[formula::kIndexOf<F>], s](
                      const KernelArgs& a, size_t begin, size_t count) {
                    f(data(a.in[0]) + begin, data(a.in[1]) + begin, data(a.out[0]) + begin, count,
                      s.s);
                  });
}

template <class... F>
void add_activations(std::vector<KernelType>& out, formula::FormulaList<F...>) {
  const auto add = [&]<class A>(A) {
    out.push_back(simd_row(A::kRow.name, refuses_activation, prepare_activation<A>, true));
    out.push_back(
        simd_row(A::kRow.gradient, refuses_activation, prepare_activation_gradient<A>, true));
  };
  (add(F{}), ...);
}

// prelu has one slope for all elements, or one per channel. `together` adjacent elements have the
// same slope: all of them, a channel's of one sample, or one in channels_last.
std::unique_ptr<Kernel> prepare_prelu(const KernelQuery& q) {
  const bool gradient = is_gradient(q);
  const TensorDesc &x = q.in[gradient ? 1 : 0], &w = q.in[gradient ? 2 : 1];
  const size_t slopes = elements(w), n = elements(x);
  const bool last = same_order(x.shape, x.layout, Layout::channels_last);
  const size_t together = slopes == 1 ? n
                          : last      ? 1
                                      : static_cast<size_t>(x.shape.tail(2).elements());
  // In channels_last every position has all channels, so the slopes are read in order.
  const size_t step = slopes > 1 && together == 1 ? 1 : 0;
  const size_t length = step == 1 ? slopes : together;
  return call([=](const KernelArgs& a) {
    const float* s = data(a.in[gradient ? 2 : 1]);
    for (size_t i = 0, run = 0; i < n; i += length, ++run) {
      const float* slope = step == 1 ? s : s + run % slopes;
      if (gradient)
        simd().prelu_gradient(data(a.in[0]) + i, data(a.in[1]) + i, slope, step, data(a.out[0]) + i,
                              length);
      else
        simd().prelu(data(a.in[0]) + i, slope, step, data(a.out[0]) + i, length);
    }
  });
}

// Rows of channels: [N, C], or images in channels_last. For a single slope, rows of any length.
std::string refuses_prelu_weight(const KernelQuery& q) {
  if (std::string reason = not_f32(q.in[1]); !reason.empty()) return reason;
  const bool rows = elements(q.out[0]) == 1 || q.in[1].shape.rank() == 2 ||
                    same_order(q.in[1].shape, q.in[1].layout, Layout::channels_last);
  return rows ? "" : "it takes images channels_last";
}

std::unique_ptr<Kernel> prepare_prelu_weight(const KernelQuery& q) {
  constexpr size_t kRow = 64;
  const size_t slopes = elements(q.out[0]), n = elements(q.in[1]);
  const size_t row = slopes <= 1 ? kRow : slopes;
  return call([=, sums = std::vector<double>(row)](const KernelArgs& a) mutable {
    std::ranges::fill(sums, 0.0);
    const float *dy = data(a.in[0]), *x = data(a.in[1]);
    simd().prelu_weight_gradient(dy, x, sums.data(), n / row, row);
    const size_t done = n / row * row;
    simd().prelu_weight_gradient(dy + done, x + done, sums.data(), 1, n - done);
    if (slopes == 1)
      data(a.out[0])[0] = static_cast<float>(std::accumulate(sums.begin(), sums.end(), 0.0));
    else
      for (size_t c = 0; c < slopes; ++c) data(a.out[0])[c] = static_cast<float>(sums[c]);
  });
}

// Pointwise losses.

// The weights of an input, of which there is one that is 1 if there is no such input.
size_t weights_in(const KernelQuery& q, size_t input) {
  return input > 0 ? std::max<size_t>(1, elements(q.in[input])) : 1;
}
// Writes them to `to`, and as many as a vector reads beyond them.
PointwiseLossArgs::Weights repeated(const KernelArgs& a, size_t input, size_t size, float* to) {
  static constexpr float kOne = 1;
  const float* const w = input > 0 ? data(a.in[input]) : &kOne;
  for (size_t i = 0; i < size + PointwiseLossArgs::kRepeats; ++i) to[i] = w[i % size];
  return {.w = to, .size = size};
}

template <class F>
std::unique_ptr<Kernel> prepare_loss(const KernelQuery& q) {
  const F loss = settings<F>(q);
  const formula::LossWeights given = formula::weights_of(loss, q.in.size());
  const size_t n = elements(q.in[0]);
  const size_t weights = weights_in(q, given.element), positive = weights_in(q, given.positive);
  const size_t second = weights + PointwiseLossArgs::kRepeats;
  const size_t floats = F::kRow.weight ? second + positive + PointwiseLossArgs::kRepeats : 0;
  scratch(floats * sizeof(float));
  const auto args = [=](const KernelArgs& a, const F& formula) {
    PointwiseLossArgs out{.x = data(a.in[0]), .t = data(a.in[1]), .n = n, .loss = &formula};
    auto* const memory = reinterpret_cast<float*>(scratch(floats * sizeof(float)));
    if (F::kRow.weight) out.weight = repeated(a, given.element, weights, memory);
    if (F::kRow.pos_weight) out.positive = repeated(a, given.positive, positive, memory + second);
    return out;
  };
  constexpr int kKind = formula::kLossOf<F>;
  if (is_gradient(q))
    return call([=](const KernelArgs& a) {
      simd().loss_gradient[kKind](args(a, loss), data(a.out[0]), 1 / data(a.in[2])[0]);
    });
  return call([=](const KernelArgs& a) {
    const double sum = simd().loss[kKind](args(a, loss));
    a.out[0].as<double>()[0] = sum / static_cast<double>(data(a.in[2])[0]);
  });
}

template <class... F>
void add_losses(std::vector<KernelType>& out, formula::FormulaList<F...>) {
  const auto add = [&]<class L>(L) {
    for (std::string_view op : {L::kRow.name, L::kRow.gradient})
      out.push_back(simd_row(op, refuses, prepare_loss<L>));
  };
  (add(F{}), ...);
}

std::unique_ptr<Kernel> prepare_gaussian_nll(const KernelQuery& q) {
  const auto loss = settings<formula::GaussianNll>(q);
  const size_t n = elements(q.in[1]);
  const size_t half = n / std::max<size_t>(1, static_cast<size_t>(q.in[1].shape[0]));
  const auto args = [=](const KernelArgs& a) {
    return GaussianNllArgs{
        .y = data(a.in[0]), .t = data(a.in[1]), .targets = n, .half = half, .loss = loss};
  };
  if (is_gradient(q))
    return call([=](const KernelArgs& a) {
      simd().gaussian_nll_gradient(args(a), data(a.out[0]), 1 / data(a.in[2])[0]);
    });
  return call([=](const KernelArgs& a) {
    const double sum = simd().gaussian_nll(args(a));
    a.out[0].as<double>()[0] = sum / static_cast<double>(data(a.in[2])[0]);
  });
}

// Dropout, masks, sums.

std::unique_ptr<Kernel> prepare_dropout(const KernelQuery& q) {
  const auto s = settings<Dropout>(q);
  const auto rows = static_cast<size_t>(q.in[0].shape[0]);
  const size_t width = elements(q.in[0]) / std::max<size_t>(1, rows);
  const float scale = 1 / static_cast<float>(1 - s.p);
  const size_t channels = s.channels ? static_cast<size_t>(q.in[0].shape[1]) : 0;
  return call([=](const KernelArgs& a) {
    const philox::Key key = philox::layer_key(a.context->seed, s.key);
    const DropoutArgs args{.key = {key.k[0], key.k[1]},
                           .step = a.context->step,
                           .sample = static_cast<uint64_t>(a.context->first_sample),
                           .keep_below = philox::keep_below(s.p),
                           .scale = scale};
    if (channels > 0)
      simd().dropout_channels(data(a.in[0]), data(a.out[0]), rows, channels, width / channels,
                              args);
    else
      simd().dropout(data(a.in[0]), data(a.out[0]), rows, width, args);
  });
}

std::unique_ptr<Kernel> prepare_masked(const KernelQuery& q) {
  const auto scale = static_cast<float>(settings<Masked>(q).scale);
  const size_t n = elements(q.in[0]);
  if (q.in[1].dtype == DType::u8)
    return call([=](const KernelArgs& a) {
      simd().masked_u8(data(a.in[0]), a.in[1].as<const uint8_t>().data(), data(a.out[0]), n, scale);
    });
  return call([=](const KernelArgs& a) {
    simd().masked(data(a.in[0]), data(a.in[1]), data(a.out[0]), n, scale);
  });
}

std::unique_ptr<Kernel> prepare_add(const KernelQuery& q) {
  return call([n = elements(q.out[0])](const KernelArgs& a) {
    float* y = data(a.out[0]);
    simd().add(data(a.in[0]), data(a.in[1]), y, n);
    for (const TensorView& x : a.in.subspan(2)) simd().add(y, data(x), y, n);
  });
}

// Embeddings, and operators that move elements.

size_t embedding_row(std::span<const int32_t> indices, size_t i, const TensorDesc& desc,
                     int64_t rows) {
  if (indices[i] < 0 || indices[i] >= rows)
    fail(Fault::data, "embedding: index {} of sample {} in its batch is not in [0, {})", indices[i],
         static_cast<int64_t>(i) * desc.shape[0] / desc.shape.elements(), rows);
  return static_cast<size_t>(indices[i]);
}

std::unique_ptr<Kernel> prepare_embedding(const KernelQuery& q) {
  const int64_t rows = q.in[1].shape[0];
  const auto width = static_cast<size_t>(q.in[1].shape[1]);
  return call([=](const KernelArgs& a) {
    const auto indices = a.in[0].as<const int32_t>();
    for (size_t i = 0; i < indices.size(); ++i)
      std::memcpy(data(a.out[0]) + i * width,
                  data(a.in[1]) + embedding_row(indices, i, a.in[0].desc, rows) * width,
                  width * sizeof(float));
  });
}

std::unique_ptr<Kernel> prepare_embedding_gradient(const KernelQuery& q) {
  const int64_t rows = q.out[0].shape[0], padding = settings<Embedding>(q).padding_idx;
  const auto width = static_cast<size_t>(q.out[0].shape[1]);
  return call([=](const KernelArgs& a) {
    const auto indices = a.in[1].as<const int32_t>();
    float* dw = data(a.out[0]);
    std::memset(dw, 0, a.out[0].desc.bytes());
    for (size_t i = 0; i < indices.size(); ++i) {
      const size_t row = embedding_row(indices, i, a.in[1].desc, rows);
      if (indices[i] == padding) continue;
      simd().add(dw + row * width, data(a.in[0]) + i * width, dw + row * width, width);
    }
  });
}

std::unique_ptr<Kernel> prepare_position_embedding(const KernelQuery& q) {
  const auto samples = static_cast<size_t>(q.in[0].shape[0]);
  const size_t size = elements(q.in[0]) / std::max<size_t>(1, samples);
  return call([=](const KernelArgs& a) {
    for (size_t n = 0; n < samples; ++n)
      simd().add(data(a.in[0]) + n * size, data(a.in[1]), data(a.out[0]) + n * size, size);
  });
}

std::unique_ptr<Kernel> prepare_position_embedding_gradient(const KernelQuery& q) {
  const auto samples = static_cast<size_t>(q.in[0].shape[0]);
  const size_t size = elements({DType::f32, q.in[0].shape.tail(1)}), all = elements(q.out[0]);
  return call([=](const KernelArgs& a) {
    float* dw = data(a.out[0]);
    simd_kernels().sum_rows(data(a.in[0]), dw, samples, size);
    std::fill(dw + size, dw + all, 0.0F);
  });
}

// How a tensor is divided at `dim`: the product of the dimensions before it, and the bytes of those
// behind it.
struct Stride {
  size_t outer = 1, inner = sizeof(float);
  Stride(const Shape& s, int dim) {
    for (int i = 0; i < dim; ++i) outer *= static_cast<size_t>(s[i]);
    for (int i = dim + 1; i < s.rank(); ++i) inner *= static_cast<size_t>(s[i]);
  }
};

std::unique_ptr<Kernel> prepare_concat(const KernelQuery& q) {
  const int dim = settings<Concat>(q).dim;
  const Stride s(q.out[0].shape, dim);
  return call([=](const KernelArgs& a) {
    std::byte* to = a.out[0].data;
    for (size_t o = 0; o < s.outer; ++o)
      for (const TensorView& v : a.in) {
        const size_t bytes = static_cast<size_t>(v.desc.shape[dim]) * s.inner;
        std::memcpy(to, v.data + o * bytes, bytes);
        to += bytes;
      }
  });
}

// slice copies a part of the whole; slice_gradient writes it into a tensor of zeros.
std::unique_ptr<Kernel> prepare_slice(const KernelQuery& q) {
  const auto slice = settings<SliceOf>(q);
  const bool out_of = !is_gradient(q);
  const Shape whole = out_of ? q.in[0].shape : q.out[0].shape;
  const Stride s(whole, slice.dim);
  const size_t row = static_cast<size_t>(whole[slice.dim]) * s.inner;
  const size_t begin = static_cast<size_t>(slice.begin) * s.inner;
  const size_t length = static_cast<size_t>(slice.length) * s.inner;
  return call([=](const KernelArgs& a) {
    if (!out_of) std::memset(a.out[0].data, 0, a.out[0].desc.bytes());
    for (size_t o = 0; o < s.outer; ++o) {
      if (out_of)
        std::memcpy(a.out[0].data + o * length, a.in[0].data + o * row + begin, length);
      else
        std::memcpy(a.out[0].data + o * row + begin, a.in[0].data + o * length, length);
    }
  });
}

KernelType copy_row(std::string_view op, std::unique_ptr<Kernel> (*prepare)(const KernelQuery&)) {
  KernelType row = simd_row(op, refuses, prepare);
  row.name = "copy";
  return row;
}

}  // namespace

std::vector<KernelType> elementwise_kernels() {
  std::vector<KernelType> out = {
      simd_row("prelu", refuses, prepare_prelu),
      simd_row("prelu_gradient", refuses, prepare_prelu),
      simd_row("prelu_weight_gradient", refuses_prelu_weight, prepare_prelu_weight),
      simd_row("gaussian_nll_loss", refuses, prepare_gaussian_nll),
      simd_row("gaussian_nll_loss_gradient", refuses, prepare_gaussian_nll),
      simd_row("dropout", refuses, prepare_dropout),
      simd_row("dropout_gradient", refuses, prepare_dropout),
      simd_row("masked", refuses, prepare_masked),
      simd_row("add", refuses, prepare_add),
      copy_row("embedding", prepare_embedding),
      simd_row("embedding_gradient", refuses, prepare_embedding_gradient),
      simd_row("position_embedding", refuses, prepare_position_embedding),
      simd_row("position_embedding_gradient", refuses, prepare_position_embedding_gradient),
      copy_row("concat", prepare_concat),
      copy_row("slice", prepare_slice),
      copy_row("slice_gradient", prepare_slice)};
  add_activations(out, formula::Activations{});
  add_losses(out, formula::PointwiseLosses{});
  return out;
}

}  // namespace dpt
