// The CPU implementations of batch normalization (graph/operators/norms/batch_norm.cpp) for
// channels_last images: rows of channels. What all elements of a channel share is computed first,
// in double. Images of bf16 give the numbers of images of f32 that are rounded to bf16.
#include <algorithm>

#include "backend/cpu/kernels.h"
#include "backend/cpu/rows_of_channels.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

// Images and rows of them are all f32 or all bf16; the first input is one.
std::string refuses_rows(const KernelQuery& q) {
  for (const auto* side : {&q.in, &q.out})
    for (const TensorDesc& d : *side)
      if (d.shape.rank() > 1 && d.dtype != q.in[0].dtype) return "its images have several types";
  return not_rows_of_channels(q.in[0], q.in[0].dtype == DType::bf16 ? DType::bf16 : DType::f32);
}

std::string refuses_input_gradient(const KernelQuery& q) {
  if (!settings<BatchNorm>(q).batch)
    return "it supports batch statistics only, not running statistics";
  return refuses_rows(q);
}

// With an addition, each of the replaced operators rounds, including the last one. So the type of
// the result and `between` have to be the same half, or neither is rounded.
std::string refuses(const KernelQuery& q) {
  const auto s = settings<BatchNorm>(q);
  if (s.training) return "it takes moments that are already computed";
  if (q.rounds != DType::f32 && q.out[0].dtype == DType::f64) return "it does not round sums";
  const DType result = q.in[0].dtype == DType::bf16 ? DType::bf16 : q.rounds;
  if (s.add && result != DType::f32 && result != s.between)
    return "it rounds all of its results or none of them";
  return refuses_rows(q);
}

// Base of kernels on rows of channels, with memory for `kTables` numbers per channel.
template <size_t kTables>
class RowsOfChannels : public Kernel {
 public:
  explicit RowsOfChannels(const KernelQuery& q)
      : c_(static_cast<size_t>(q.in[0].shape[1])),
        rows_(elements(q.in[0]) / std::max<size_t>(1, c_)),
        to_(round_to(q.in[0].dtype == DType::bf16 ? DType::bf16 : q.rounds)),
        tables_(c_, kTables) {}

 protected:
  void round_between(const KernelQuery& q) {
    if (q.in[0].dtype == DType::f32) to_ = round_to(settings<BatchNorm>(q).between);
  }

  double* table(size_t i) { return tables_[i]; }

  // Writes batch norm as x * scale + shift. moments, weight: indices of these inputs; the bias
  // follows the weight.
  void lay_scale(const KernelArgs& a, size_t moments, size_t weight, double* scale,
                 double* shift) const {
    const auto m = a.in[moments].as<const double>();
    for (size_t c = 0; c < c_; ++c) {
      const double w = a.in.size() > weight ? double{data(a.in[weight])[c]} : 1;
      const double b = a.in.size() > weight + 1 ? double{data(a.in[weight + 1])[c]} : 0;
      scale[c] = m[c_ + c] * w;
      shift[c] = b - m[c] * scale[c];
    }
  }
  // Writes sums [2 C + 1]: both sums of each channel, then the row count.
  void give(const TensorView& to, const double* first, const double* second) const {
    const auto sums = to.as<double>();
    std::copy_n(first, c_, sums.begin());
    std::copy_n(second, c_, sums.begin() + static_cast<std::ptrdiff_t>(c_));
    sums.back() = static_cast<double>(rows_);
  }
  // Computes the sums of a gradient. `passes` adds dy to `sum` and dy * (x - mean) to `along`.
  template <class F>
  void sum_gradient(const TensorView& moments, const TensorView& to, F passes) {
    double *sum = table(0), *along = table(1), *mean = table(2);
    const auto m = moments.as<const double>();
    tables_.clear(0);
    tables_.clear(1);
    std::copy_n(m.begin(), c_, mean);
    passes(sum, along, mean);
    for (size_t c = 0; c < c_; ++c) along[c] *= m[c_ + c];
    give(to, sum, along);
  }
  size_t c_, rows_;
  RoundTo to_;
  ChannelTables tables_;
};

template <class T>
class ChannelSums : public RowsOfChannels<2> {
 public:
  using RowsOfChannels::RowsOfChannels;
  void run(const KernelArgs& a) override {
    tables_.clear(0);
    tables_.clear(1);
    channel_simd<T>().sums(image<T>(a.in[0]), table(0), table(1), rows_, c_);
    give(a.out[0], table(0), table(1));
  }
};

// batch_norm and batch_norm{relu}.
template <class T, bool kRelu>
class Forward : public RowsOfChannels<2> {
 public:
  using RowsOfChannels::RowsOfChannels;
  void run(const KernelArgs& a) override {
    lay_scale(a, 1, 2, table(0), table(1));
    (kRelu ? channel_simd<T>().scale_relu : channel_simd<T>().scale)(
        image<T>(a.in[0]), table(0), table(1), image<T>(a.out[0]), rows_, c_, to_);
  }
};

template <class T>
class AddRelu : public RowsOfChannels<2> {
 public:
  explicit AddRelu(const KernelQuery& q) : RowsOfChannels(q) { round_between(q); }
  void run(const KernelArgs& a) override {
    lay_scale(a, 2, 3, table(0), table(1));
    channel_simd<T>().scale_add_relu(image<T>(a.in[0]), image<T>(a.in[1]), table(0), table(1),
                                     image<T>(a.out[0]), rows_, c_, to_);
  }
};

template <class T, bool kRelu>
class GradientSums : public RowsOfChannels<5> {
 public:
  using RowsOfChannels::RowsOfChannels;
  void run(const KernelArgs& a) override {
    sum_gradient(a.in[2], a.out[0], [&](double* sum, double* along, const double* mean) {
      if constexpr (kRelu) {
        lay_scale(a, 2, 3, table(3), table(4));
        channel_simd<T>().relu_gradient_sums(image<T>(a.in[0]), image<T>(a.in[1]), mean, table(3),
                                             table(4), sum, along, rows_, c_);
      } else {
        channel_simd<T>().gradient_sums(image<T>(a.in[0]), image<T>(a.in[1]), mean, sum, along,
                                        rows_, c_);
      }
    });
  }
};

template <class T>
class AddReluGradient : public RowsOfChannels<3> {
 public:
  explicit AddReluGradient(const KernelQuery& q) : RowsOfChannels(q) { round_between(q); }
  void run(const KernelArgs& a) override {
    sum_gradient(a.in[2], a.out[1], [&](double* sum, double* along, const double* mean) {
      channel_simd<T>().add_relu_gradient(image<T>(a.in[3]), image<T>(a.in[1]), image<T>(a.in[0]),
                                          a.in.size() > 4 ? image<T>(a.in[4]) : nullptr, mean,
                                          image<T>(a.out[0]), sum, along, rows_, c_, to_);
    });
  }
};

// dx = rstd * w * (dy - mean(dy) - h * mean(dy * h)) with h the normalized x, rewritten as a linear
// function of dy and x with three coefficients per channel.
template <class T, bool kRelu>
class InputGradient : public RowsOfChannels<5> {
 public:
  using RowsOfChannels::RowsOfChannels;
  void run(const KernelArgs& a) override {
    const auto moments = a.in[2].as<const double>(), sums = a.in[3].as<const double>();
    double *scale = table(0), *slope = table(1), *shift = table(2);
    for (size_t c = 0; c < c_; ++c) {
      const double rstd = moments[c_ + c], w = a.in.size() > 4 ? double{data(a.in[4])[c]} : 1;
      scale[c] = rstd * w;
      slope[c] = -scale[c] * rstd * sums[c_ + c] / sums.back();
      shift[c] = -scale[c] * sums[c] / sums.back() - slope[c] * moments[c];
    }
    const BatchNormLine line{scale, slope, shift};
    if constexpr (kRelu) {
      lay_scale(a, 2, 4, table(3), table(4));
      channel_simd<T>().relu_input_gradient(image<T>(a.in[0]), image<T>(a.in[1]), line, table(3),
                                            table(4), image<T>(a.out[0]), rows_, c_, to_);
    } else {
      channel_simd<T>().input_gradient(image<T>(a.in[0]), image<T>(a.in[1]), line,
                                       image<T>(a.out[0]), rows_, c_, to_);
    }
  }
};

std::unique_ptr<Kernel> prepare_channel_sums(const KernelQuery& q) {
  return with_image_type(q, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    return std::make_unique<ChannelSums<T>>(q);
  });
}
std::unique_ptr<Kernel> prepare_forward(const KernelQuery& q) {
  return with_image_type(q, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    const auto s = settings<BatchNorm>(q);
    if (s.add) return std::make_unique<AddRelu<T>>(q);
    if (s.relu) return std::make_unique<Forward<T, true>>(q);
    return std::make_unique<Forward<T, false>>(q);
  });
}
std::unique_ptr<Kernel> prepare_gradient_sums(const KernelQuery& q) {
  return with_image_type(q, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    const auto s = settings<BatchNorm>(q);
    if (s.add) return std::make_unique<AddReluGradient<T>>(q);
    if (s.relu) return std::make_unique<GradientSums<T, true>>(q);
    return std::make_unique<GradientSums<T, false>>(q);
  });
}
std::unique_ptr<Kernel> prepare_input_gradient(const KernelQuery& q) {
  return with_image_type(q, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    const auto s = settings<BatchNorm>(q);
    if (s.add || s.relu) return std::make_unique<InputGradient<T, true>>(q);
    return std::make_unique<InputGradient<T, false>>(q);
  });
}

}  // namespace

std::vector<KernelType> batch_norm_kernels() {
  return {
      simd_row("channel_sums", refuses_rows, prepare_channel_sums),
      simd_row("batch_norm", refuses, prepare_forward, true),
      simd_row("batch_norm_sums", refuses, prepare_gradient_sums, true),
      simd_row("batch_norm_input_gradient", refuses_input_gradient, prepare_input_gradient, true)};
}

}  // namespace dpt
