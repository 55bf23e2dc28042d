// The CPU implementations of norms of rows (graph/operators/norms/row_norm.cpp). The elements of a
// row adjoin, or a row is a group of channels of a channels_last image. Such groups use the kernels
// of batch normalization, sample by sample, with the moments of a group for each of its channels.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cpu/rows_of_channels.h"
#include "backend/cpu/simd/elementwise.h"
#include "graph/norm_rows.h"

namespace dpt {
namespace {

using formula::NormRows;

const ElementwiseKernels& row_simd() {
  static const ElementwiseKernels& kernels = elementwise_simd(simd_kernels().isa);
  return kernels;
}

float* result_or_null(const KernelArgs& a, size_t i) {
  return i < a.out.size() ? data(a.out[i]) : nullptr;
}

std::string not_all_f32(std::span<const TensorDesc> all) {
  for (const TensorDesc& d : all)
    if (std::string reason = not_f32(d); !reason.empty()) return reason;
  return "";
}

// Rows of adjacent elements.

std::string refuses_rows(const KernelQuery& q) { return not_all_f32(q.in); }

std::unique_ptr<Kernel> prepare_rows(const KernelQuery& q) {
  const auto s = settings<RowNorm>(q);
  const NormRows n = norm_rows(s, q.in[0]);
  return call([=](const KernelArgs& a) {
    row_simd().row_norm({.x = data(a.in[0]),
                         .w = data_or_null(a, 1),
                         .b = data_or_null(a, 2),
                         .y = data(a.out[0]),
                         .mean = s.center ? data(a.out[1]) : nullptr,
                         .rstd = data(a.out.back()),
                         .rows = static_cast<size_t>(rows_of(n)),
                         .columns = static_cast<size_t>(width_of(n)),
                         .eps = static_cast<float>(s.eps)});
  });
}

std::unique_ptr<Kernel> prepare_rows_gradient(const KernelQuery& q) {
  const auto s = settings<RowNorm>(q);
  const NormRows n = norm_rows(s, q.in[1]);
  const bool input = q.op == names_of(s).input_gradient;
  return call([=](const KernelArgs& a) {
    const size_t rstd = s.center ? 3 : 2;
    const RowNormGradient args{.dy = data(a.in[0]),
                               .x = data(a.in[1]),
                               .mean = s.center ? data(a.in[2]) : nullptr,
                               .rstd = data(a.in[rstd]),
                               .w = data_or_null(a, rstd + 1),
                               .rows = static_cast<size_t>(rows_of(n)),
                               .columns = static_cast<size_t>(width_of(n))};
    if (input)
      row_simd().row_norm_input_gradient(args, data(a.out[0]));
    else
      row_simd().row_norm_weight_gradient(args, data(a.out[0]), result_or_null(a, 1));
  });
}

// Groups of channels.

// The images of the forward pass may be in bf16; all else is f32.
std::string refuses_groups(const KernelQuery& q) {
  const auto s = settings<RowNorm>(q);
  if (width_of(norm_rows(s, q.in[0])) == 0) return "it takes no empty groups";
  if (std::string reason = not_all_f32(std::span(q.in).subspan(1)); !reason.empty()) return reason;
  const bool half = q.in[0].dtype == DType::bf16 && q.op == names_of(s).norm;
  return not_rows_of_channels(q.in[0], half ? DType::bf16 : DType::f32);
}

// Adjacent positions of a few channels are folded into columns, as many as fill a vector: sums of a
// channel are gathered from its columns, and its coefficients spread over them.
class GroupKernel : public Kernel {
 public:
  GroupKernel(const KernelQuery& q, size_t tables)
      : settings_(settings<RowNorm>(q)),
        n_(norm_rows(settings_, q.in[0])),
        channels_(static_cast<size_t>(weights_of(n_))),
        folded_(folded(channels_, static_cast<size_t>(n_.positions))),
        columns_(channels_ * folded_),
        rows_(static_cast<size_t>(n_.positions) / folded_),
        table_(columns_, tables),
        to_(round_to(q.in[0].dtype == DType::bf16 ? DType::bf16 : q.rounds)) {}

 protected:
  size_t size() const { return rows_ * columns_; }  // elements of a sample
  // Calls f(row, first channel, end) for each group of a sample.
  template <class F>
  void each_group(int64_t sample, F f) const {
    const auto length = static_cast<size_t>(n_.channels);
    for (int64_t g = 0; g < n_.groups; ++g) {
      const size_t first = static_cast<size_t>(g) * length;
      f(static_cast<size_t>(sample * n_.groups + g), first, first + length);
    }
  }

  void gather(size_t table) {
    double* t = table_[table];
    for (size_t i = channels_; i < columns_; ++i) t[i % channels_] += t[i];
  }
  void spread(size_t table) {
    double* t = table_[table];
    for (size_t i = channels_; i < columns_; ++i) t[i] = t[i - channels_];
  }

  RowNorm settings_;
  NormRows n_;
  size_t channels_, folded_, columns_, rows_;  // rows, columns: of a sample
  ChannelTables table_;
  RoundTo to_;

 private:
  static size_t folded(size_t channels, size_t positions) {
    size_t out = std::max<size_t>(1, kChannelBlock / std::max<size_t>(1, channels));
    while (positions % out != 0) --out;
    return out;
  }
};

template <class T>
class GroupForward : public GroupKernel {
 public:
  explicit GroupForward(const KernelQuery& q) : GroupKernel(q, 2) {}

  void run(const KernelArgs& a) override {
    const T* x = image<T>(a.in[0]);
    T* y = image<T>(a.out[0]);
    for (int64_t sample = 0; sample < n_.samples; ++sample, x += size(), y += size()) {
      table_.clear(0);
      table_.clear(1);
      channel_simd<T>().sums(x, table_[0], table_[1], rows_, columns_);
      gather(0);
      gather(1);
      each_group(sample, [&](size_t row, size_t first, size_t end) { lay(a, row, first, end); });
      spread(0);
      spread(1);
      channel_simd<T>().scale(x, table_[0], table_[1], y, rows_, columns_, to_);
    }
  }

 private:
  // Replaces the sums of x and x^2 of a group's channels by the factor and the term of each.
  void lay(const KernelArgs& a, size_t row, size_t first, size_t end) {
    double sum = 0, squares = 0;
    for (size_t c = first; c < end; ++c) {
      sum += table_[0][c];
      squares += table_[1][c];
    }
    const auto width = static_cast<double>(width_of(n_));
    const double mean = settings_.center ? sum / width : 0;
    const double variance = std::max(squares / width - mean * mean, 0.0);
    const double rstd = 1 / std::sqrt(variance + settings_.eps);
    if (settings_.center) data(a.out[1])[row] = static_cast<float>(mean);
    data(a.out.back())[row] = static_cast<float>(rstd);
    const float *w = data_or_null(a, 1), *b = data_or_null(a, 2);
    for (size_t c = first; c < end; ++c) {
      table_[0][c] = w == nullptr ? rstd : rstd * double{w[c]};
      table_[1][c] = (b == nullptr ? 0 : double{b[c]}) - mean * table_[0][c];
    }
  }
};

// dx is a linear function of dy and x, with three coefficients per channel; dw and db are sums over
// the samples in their order. A node has dx, or dw and db.
class GroupGradient : public GroupKernel {
 public:
  explicit GroupGradient(const KernelQuery& q)
      : GroupKernel(q, kTables), input_(q.op == names_of(settings_).input_gradient) {}

  void run(const KernelArgs& a) override {
    const float *dy = data(a.in[0]), *x = data(a.in[1]);
    float* dx = data(a.out[0]);
    table_.clear(kWeights);
    table_.clear(kBiases);
    for (int64_t sample = 0; sample < n_.samples; ++sample, dy += size(), x += size()) {
      sum(a, sample, dy, x);
      each_group(sample, [&](size_t row, size_t first, size_t end) { lay(a, row, first, end); });
      if (!input_) continue;
      for (const Table coefficient : {kScale, kSlope, kShift}) spread(coefficient);
      channel_simd<float>().input_gradient(dy, x, {table_[kScale], table_[kSlope], table_[kShift]},
                                           dx, rows_, columns_, to_);
      dx += size();
    }
    if (input_) return;
    std::copy_n(table_[kWeights], channels_, data(a.out[0]));
    if (settings_.center) std::copy_n(table_[kBiases], channels_, data(a.out[1]));
  }

 private:
  enum Table : size_t { kMean, kSum, kAlong, kScale, kSlope, kShift, kWeights, kBiases, kTables };

  size_t rstd() const { return settings_.center ? 3 : 2; }

  // Sums dy and dy * (x - mean) of each channel.
  void sum(const KernelArgs& a, int64_t sample, const float* dy, const float* x) {
    each_group(sample, [&](size_t row, size_t first, size_t end) {
      const double mean = settings_.center ? double{data(a.in[2])[row]} : 0;
      std::fill(table_[kMean] + first, table_[kMean] + end, mean);
    });
    spread(kMean);
    table_.clear(kSum);
    table_.clear(kAlong);
    channel_simd<float>().gradient_sums(dy, x, table_[kMean], table_[kSum], table_[kAlong], rows_,
                                        columns_);
    gather(kSum);
    gather(kAlong);
  }

  // With g = dy * w and h the normalized x: dx = rstd * (g - mean(g) - h * mean(g * h)).
  void lay(const KernelArgs& a, size_t row, size_t first, size_t end) {
    const double rs = double{data(a.in[rstd()])[row]}, mean = table_[kMean][first];
    const float* w = data_or_null(a, rstd() + 1);
    double sum = 0, along = 0;
    for (size_t c = first; c < end; ++c) {
      table_[kScale][c] = w == nullptr ? rs : rs * double{w[c]};
      sum += table_[kScale][c] * table_[kSum][c];
      along += table_[kScale][c] * table_[kAlong][c];
      table_[kWeights][c] += table_[kAlong][c] * rs;
      table_[kBiases][c] += table_[kSum][c];
    }
    const auto width = static_cast<double>(width_of(n_));
    const double slope = -along * rs * rs / width;
    const double shift = (settings_.center ? -sum / width : 0) - slope * mean;
    std::fill(table_[kSlope] + first, table_[kSlope] + end, slope);
    std::fill(table_[kShift] + first, table_[kShift] + end, shift);
  }

  bool input_;
};

std::unique_ptr<Kernel> prepare_groups(const KernelQuery& q) {
  return with_image_type(q, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    return std::make_unique<GroupForward<T>>(q);
  });
}

std::unique_ptr<Kernel> prepare_groups_gradient(const KernelQuery& q) {
  return std::make_unique<GroupGradient>(q);
}

}  // namespace

std::vector<KernelType> row_norm_kernels() {
  std::vector<KernelType> out;
  for (const RowNormNames& n : {kRowNorms[0], kRowNorms[1]}) {
    out.push_back(simd_row(n.norm, refuses_rows, prepare_rows));
    out.push_back(simd_row(n.input_gradient, refuses_rows, prepare_rows_gradient));
    out.push_back(simd_row(n.weight_gradient, refuses_rows, prepare_rows_gradient));
  }
  const RowNormNames& n = kRowNorms[2];
  out.push_back(simd_row(n.norm, refuses_groups, prepare_groups, true));
  out.push_back(simd_row(n.input_gradient, refuses_groups, prepare_groups_gradient, true));
  out.push_back(simd_row(n.weight_gradient, refuses_groups, prepare_groups_gradient));
  return out;
}

}  // namespace dpt
