// The rows of batch normalisation (graph/operators/batch_norm.cpp) over rows of channels. What is
// the same for all elements of a channel is computed first, in double.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/batch_norm.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

const BatchNormKernels& simd() {
  static const BatchNormKernels& kernels = batch_norm_simd(simd_kernels().isa);
  return kernels;
}

float* data(const TensorView& v) { return reinterpret_cast<float*>(v.data); }

std::string refuses(const KernelQuery& q) {
  const TensorDesc& x = q.in[0];
  if (x.dtype != DType::f32) return fmt::format("it computes in f32, not {}", name_of(x.dtype));
  // [N, C] is rows of channels by itself.
  if (x.shape.rank() > 2 && !same_order(x.shape, x.layout, Layout::channels_last))
    return "it takes images channels_last";
  return "";
}

std::string refuses_input_gradient(const KernelQuery& q) {
  if (!std::any_cast<const BatchNorm&>(q.attrs).batch) return "it takes moments of the batch only";
  return refuses(q);
}

// Rows of channels, and memory for `kTables` numbers of each channel.
template <size_t kTables>
class RowsOfChannels : public Kernel {
 public:
  explicit RowsOfChannels(const KernelQuery& q)
      : c_(static_cast<size_t>(q.in[0].shape[1])),
        rows_(static_cast<size_t>(q.in[0].shape.elements()) / std::max<size_t>(1, c_)),
        stride_((c_ + kChannelBlock - 1) / kChannelBlock * kChannelBlock),
        tables_(kTables * stride_) {}

 protected:
  double* table(size_t i) { return tables_.data() + i * stride_; }
  void clear() { std::ranges::fill(tables_, 0.0); }
  // [2 C + 1], as channel_sums and batch_norm_sums give them.
  void give(const TensorView& to, const double* first, const double* second) const {
    const auto sums = to.as<double>();
    std::copy_n(first, c_, sums.begin());
    std::copy_n(second, c_, sums.begin() + static_cast<std::ptrdiff_t>(c_));
    sums.back() = static_cast<double>(rows_);
  }
  size_t c_, rows_;

 private:
  size_t stride_;
  std::vector<double> tables_;
};

class ChannelSums : public RowsOfChannels<2> {
 public:
  using RowsOfChannels::RowsOfChannels;
  void run(const KernelArgs& a) override {
    clear();
    simd().sums(data(a.in[0]), table(0), table(1), rows_, c_);
    give(a.out[0], table(0), table(1));
  }
};

// y = (x - mean) * rstd * w + b as x * scale + shift.
class Forward : public RowsOfChannels<2> {
 public:
  using RowsOfChannels::RowsOfChannels;
  void run(const KernelArgs& a) override {
    const auto moments = a.in[1].as<const double>();
    for (size_t c = 0; c < c_; ++c) {
      const double w = a.in.size() > 2 ? double{data(a.in[2])[c]} : 1;
      const double b = a.in.size() > 3 ? double{data(a.in[3])[c]} : 0;
      table(0)[c] = moments[c_ + c] * w;
      table(1)[c] = b - moments[c] * table(0)[c];
    }
    simd().scale(data(a.in[0]), table(0), table(1), data(a.out[0]), rows_, c_);
  }
};

class GradientSums : public RowsOfChannels<3> {
 public:
  using RowsOfChannels::RowsOfChannels;
  void run(const KernelArgs& a) override {
    const auto moments = a.in[2].as<const double>();
    clear();
    std::ranges::copy(moments.first(c_), table(2));
    simd().gradient_sums(data(a.in[0]), data(a.in[1]), table(2), table(0), table(1), rows_, c_);
    for (size_t c = 0; c < c_; ++c) table(1)[c] *= moments[c_ + c];
    give(a.out[0], table(0), table(1));
  }
};

// dx = rstd * w * (dy - mean of dy - h * mean of dy * h) as dy * scale + x * slope + shift.
class InputGradient : public RowsOfChannels<3> {
 public:
  using RowsOfChannels::RowsOfChannels;
  void run(const KernelArgs& a) override {
    const auto moments = a.in[2].as<const double>(), sums = a.in[3].as<const double>();
    for (size_t c = 0; c < c_; ++c) {
      const double rstd = moments[c_ + c], w = a.in.size() > 4 ? double{data(a.in[4])[c]} : 1;
      table(0)[c] = rstd * w;
      table(1)[c] = -table(0)[c] * rstd * sums[c_ + c] / sums.back();
      table(2)[c] = -table(0)[c] * sums[c] / sums.back() - table(1)[c] * moments[c];
    }
    simd().input_gradient(data(a.in[0]), data(a.in[1]), table(0), table(1), table(2),
                          data(a.out[0]), rows_, c_);
  }
};

template <class K>
std::unique_ptr<Kernel> prepare(const KernelQuery& q) {
  return std::make_unique<K>(q);
}

}  // namespace

std::vector<KernelType> batch_norm_kernels() {
  const std::string_view isa = simd_kernels().name;
  std::vector<KernelType> out = {
      {"channel_sums", isa, refuses, prepare<ChannelSums>},
      {"batch_norm", isa, refuses, prepare<Forward>},
      {"batch_norm_sums", isa, refuses, prepare<GradientSums>},
      {"batch_norm_input_gradient", isa, refuses_input_gradient, prepare<InputGradient>}};
  for (KernelType& row : out) row.by_sample = true;
  return out;
}

}  // namespace dpt
