// Norms of rows: y = (x - mean) * rstd * w + b with the moments of each row; rstd = 1 /
// sqrt(biased variance + eps). RowNorm (graph/attrs.h) says what a row is:
//   layer_norm (Ba et al., 2016): the last `dims` dimensions of x[M..., K...]; w and b are [K...]
//   rms_norm (Zhang and Sennrich, 2019): the same with mean 0: rstd = 1 / sqrt(mean(x^2) + eps)
//   group_norm (Wu and He, 2018): the C / groups channels of each group of a sample of x[N, C,
//   ...];
//     w and b are [C]. With C groups it is instance normalization
// b, or both, may be missing. Further results for the gradient: the mean of each row, unless it is
// 0, and rstd, [M...] or [N, groups].
//   NORM_input_gradient(dy, x, [mean], rstd, [w]) -> dx
//   NORM_weight_gradient(dy, x, [mean], rstd) -> dw, [db]
//   NORM_backward(dy, x, mean, rstd, w) -> dx, dw, db: both in one pass, for GPUs; made by
//     graph/passes/fuse.cpp
#include <cmath>

#include "graph/norm_rows.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

using formula::NormRows;

// The shape of the moments. Throws Error{spec} if x has no such rows.
Shape rows_shape(const RowNorm& s, const Shape& x) {
  const std::string_view name = names_of(s).norm;
  if (s.groups > 0) {
    if (x.rank() < 2 || x[1] % s.groups != 0)
      fail(Fault::spec, "{}: the channels of {} cannot be split into {} groups", name, x.str(),
           s.groups);
    return {x[0], s.groups};
  }
  if (s.dims < 1 || s.dims >= x.rank())
    fail(Fault::spec, "{}: cannot normalize over the last {} dimensions of {}", name, s.dims,
         x.str());
  return Shape(x.extents().first(static_cast<size_t>(x.rank() - s.dims)));
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const RowNorm& s) {
  const std::string_view name = names_of(s).norm;
  need_real(name, in[0]);
  const Shape& x = in[0].shape;
  const TensorDesc moment{full(in[0].dtype), rows_shape(s, x)};
  for (const TensorDesc& p : in.subspan(1))
    if (p.shape != weight_shape(s, x))
      fail(Fault::spec, "{}: parameter {} does not fit the {} of {}", name, p.shape.str(),
           s.groups > 0 ? "channels" : fmt::format("last {} dimensions", s.dims), x.str());
  std::vector<TensorDesc> out = {in[0]};
  out.insert(out.end(), s.center ? 2 : 1, moment);
  return out;
}

// The inputs of a gradient: dy, x, the moments, and perhaps w.
std::vector<TensorDesc> infer_input(std::span<const TensorDesc> in, const RowNorm& s) {
  const size_t weight = s.center ? 4 : 3;
  const std::string_view name = names_of(s).norm;
  require(in[0] == in[1], fmt::format("{}: dy is like x", name));
  for (const TensorDesc& d : in.subspan(2, weight - 2))
    require(d.shape == rows_shape(s, in[1].shape), fmt::format("{}: a row has moments", name));
  require(in.size() <= weight || in[weight].shape == weight_shape(s, in[1].shape),
          fmt::format("{}: a row has weights", name));
  return {in[0]};
}

std::vector<TensorDesc> infer_weight(std::span<const TensorDesc> in, const RowNorm& s) {
  infer_input(in, s);
  return std::vector(s.center ? 2 : 1, TensorDesc{full(in[0].dtype), weight_shape(s, in[0].shape)});
}

std::vector<TensorDesc> infer_backward(std::span<const TensorDesc> in, const RowNorm& attrs) {
  std::vector<TensorDesc> out = infer_weight(in, attrs);
  out.insert(out.begin(), in[0]);
  return out;
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const RowNormNames& names = names_of(settings<RowNorm>(n.attrs));
  std::vector<ValueId> in = {dy[0], n.in[0]};
  in.insert(in.end(), n.out.begin() + 1, n.out.end());
  std::vector<ValueId> out(n.in.size(), kNoValue);
  if (n.in.size() > 1) {
    out[1] = g.apply(names.weight_gradient, in, n.attrs);
    if (n.in.size() > 2) out[2] = g.results()[1];
    in.push_back(n.in[1]);
  }
  out[0] = g.apply(names.input_gradient, in, n.attrs);
  return out;
}

// Calls f(index, channel) for each element of a row.
template <class F>
void each_of(const NormRows& rows, int64_t row, F f) {
  for (int64_t e = 0; e < width_of(rows); ++e)
    f(static_cast<size_t>(index_of(rows, row, e)), static_cast<size_t>(channel_of(rows, row, e)));
}

void forward(const KernelArgs& args, const RowNorm& s) {
  const NormRows rows = norm_rows(s, args.in[0].desc);
  const auto width = static_cast<double>(width_of(rows));
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto w = optional_input<T>(args, 1), b = optional_input<T>(args, 2);
    const auto y = args.out[0].as<T>(), rstd = args.out.back().as<T>();
    for (int64_t r = 0; r < rows_of(rows); ++r) {
      double mean = 0, squares = 0;
      if (s.center) {
        each_of(rows, r, [&](size_t i, size_t) { mean += static_cast<double>(x[i]); });
        mean /= width;
        args.out[1].as<T>()[static_cast<size_t>(r)] = static_cast<T>(mean);
      }
      each_of(rows, r, [&](size_t i, size_t) {
        const double d = static_cast<double>(x[i]) - mean;
        squares += d * d;
      });
      const double scale = 1 / std::sqrt(squares / width + s.eps);
      rstd[static_cast<size_t>(r)] = static_cast<T>(scale);
      each_of(rows, r, [&](size_t i, size_t c) {
        y[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * scale *
                                  (w.empty() ? 1 : static_cast<double>(w[c])) +
                              (b.empty() ? 0 : static_cast<double>(b[c])));
      });
    }
  });
}

// The inputs of the gradients, in double.
template <class T>
struct Given {
  std::span<const T> dy, x, mean, rstd, w;  // mean, w: may be empty
  Given(const KernelArgs& args, const RowNorm& s)
      : dy(args.in[0].as<const T>()),
        x(args.in[1].as<const T>()),
        mean(s.center ? args.in[2].as<const T>() : std::span<const T>{}),
        rstd(args.in[s.center ? 3 : 2].as<const T>()),
        w(optional_input<T>(args, s.center ? 4 : 3)) {}
  // dy * w, and the normalized x.
  double up(size_t i, size_t c) const {
    return static_cast<double>(dy[i]) * (w.empty() ? 1 : static_cast<double>(w[c]));
  }
  double normalised(size_t i, int64_t r) const {
    const auto row = static_cast<size_t>(r);
    const double m = mean.empty() ? 0 : static_cast<double>(mean[row]);
    return (static_cast<double>(x[i]) - m) * static_cast<double>(rstd[row]);
  }
};

// With g = dy * w and h the normalized x: dx = rstd * (g - mean(g) - h * mean(g * h)), where
// mean(g) is 0 if the mean of x is.
void input_gradient(const KernelArgs& args, const RowNorm& s) {
  const NormRows rows = norm_rows(s, args.in[1].desc);
  const auto width = static_cast<double>(width_of(rows));
  with_type_of(args.in[0], [&]<class T>(T) {
    const Given<T> given(args, s);
    const auto dx = args.out[0].as<T>();
    for (int64_t r = 0; r < rows_of(rows); ++r) {
      double sum = 0, along = 0;
      each_of(rows, r, [&](size_t i, size_t c) {
        sum += given.up(i, c);
        along += given.up(i, c) * given.normalised(i, r);
      });
      const double shift = s.center ? sum / width : 0;
      each_of(rows, r, [&](size_t i, size_t c) {
        dx[i] = static_cast<T>(static_cast<double>(given.rstd[static_cast<size_t>(r)]) *
                               (given.up(i, c) - shift - given.normalised(i, r) * along / width));
      });
    }
  });
}

void weight_gradient(const KernelArgs& args, const RowNorm& s) {
  const NormRows rows = norm_rows(s, args.in[1].desc);
  with_type_of(args.in[0], [&]<class T>(T) {
    const Given<T> given(args, s);
    std::vector<double> along(args.out[0].as<T>().size()), sum(along.size());
    for (int64_t r = 0; r < rows_of(rows); ++r)
      each_of(rows, r, [&](size_t i, size_t c) {
        sum[c] += static_cast<double>(given.dy[i]);
        along[c] += static_cast<double>(given.dy[i]) * given.normalised(i, r);
      });
    for (size_t c = 0; c < along.size(); ++c) {
      args.out[0].as<T>()[c] = static_cast<T>(along[c]);
      if (s.center) args.out[1].as<T>()[c] = static_cast<T>(sum[c]);
    }
  });
}

void backward(const KernelArgs& args, const RowNorm& attrs) {
  weight_gradient({.in = args.in.first(4), .out = args.out.subspan(1), .context = args.context},
                  attrs);
  input_gradient({.in = args.in, .out = args.out.first(1), .context = args.context}, attrs);
}

Operators types_of(const RowNormNames& names) {
  Operators out = {{.name = names.norm,
                    .precision = Precision::full_on_cuda,
                    .infer = typed<infer>,
                    .gradient = gradient,
                    .reference = typed<forward>},
                   {.name = names.input_gradient,
                    .precision = Precision::full,
                    .infer = typed<infer_input>,
                    .reference = typed<input_gradient>,
                    .traits = Trait::backward},
                   {.name = names.weight_gradient,
                    .precision = Precision::full,
                    .infer = typed<infer_weight>,
                    .reference = typed<weight_gradient>,
                    .flops = elements_of_first_input,
                    .traits = Trait::backward}};
  if (!names.backward.empty())
    out.push_back({.name = names.backward,
                   .precision = Precision::full,
                   .infer = typed<infer_backward>,
                   .reference = typed<backward>,
                   .flops = elements_of_first_input,
                   .traits = Trait::backward});
  return out;
}

}  // namespace

Operators row_norm() {
  Operators out;
  for (const RowNormNames& names : kRowNorms)
    for (OperatorType& type : types_of(names)) {
      if (names.norm == "group_norm") type.layouts = Layouts::images;
      out.push_back(type);
    }
  return out;
}

}  // namespace dpt::operators
