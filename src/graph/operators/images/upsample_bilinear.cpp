// upsample_bilinear: y[N, C, ...] by linear interpolation of x[N, C, ...] along all extents
// (graph/formulas/resample.h). Positions are computed in the type of x, as by PyTorch.
//   upsample_bilinear_gradient(dy) -> dx[N, C, Resize::extents]
// upsample_bicubic: the same by cubic convolution.
#include <functional>

#include "graph/formulas/resample.h"
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kNoPixels = "an empty image cannot be upsampled";

// kTaps: of each extent, 2 or 4.
template <int kTaps>
class Interpolation {
 public:
  static Operators types() {
    return {{.name = kName,
             .precision = Precision::full_on_cuda,
             .infer = typed<infer>,
             .gradient = gradient_to_extents<Resize>,
             .reference = typed<reference<false>>,
             .flops = products,
             .layouts = Layouts::images},
            {.name = kGradient,
             .precision = Precision::follow,
             .infer = typed<infer_gradient>,
             .reference = typed<reference<true>>,
             .flops = elements_of_first_input,
             .layouts = Layouts::images,
             .traits = Trait::backward}};
  }

 private:
  static constexpr std::string_view kName = kTaps == 2 ? "upsample_bilinear" : "upsample_bicubic",
                                    kGradient = kTaps == 2 ? "upsample_bilinear_gradient"
                                                           : "upsample_bicubic_gradient";

  static std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Resize& attrs) {
    return infer_resized(kName, kNoPixels, in, attrs);
  }
  static std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in,
                                                const Resize& attrs) {
    return infer_resized(kGradient, kNoPixels, in, attrs);
  }
  template <class T>
  static std::vector<formula::Taps<kTaps>> taps(int64_t in, int64_t out, double scale,
                                                bool align_corners) {
    const T ratio = formula::linear_ratio<T>(in, out, scale, align_corners);
    std::vector<formula::Taps<kTaps>> all;
    for (int64_t i = 0; i < out; ++i)
      all.push_back(formula::taps_of<kTaps>(i, in, out, ratio, align_corners));
    return all;
  }

  // Calls f(offset in x, offset in y, weight) for the sources of each element of y.
  template <class T, class F>
  static void each_source(const Image& x, const Image& y, const Resize& s, F f) {
    std::array<std::vector<formula::Taps<kTaps>>, 3> all;
    for (size_t i = 0; i < 3; ++i)
      all[i] = taps<T>(x.extents[i], y.extents[i], s.scale[i], s.align_corners);
    const size_t x_step = x.column_step(), y_step = y.column_step();
    y.each_row([&](int64_t n, int64_t c, const Extents& p) {
      const auto &plane = all[0][static_cast<size_t>(p[0])],
                 &row = all[1][static_cast<size_t>(p[1])];
      size_t rows = 0, from[kTaps * kTaps];
      double weight[kTaps * kTaps];
      for (int d = 0; d < kTaps; ++d)
        for (int i = 0; i < kTaps && plane.weight[d] != 0; ++i) {  // an image has one plane
          from[rows] = x.at(n, c, {plane.at[d], row.at[i], 0});
          weight[rows++] = plane.weight[d] * row.weight[i];
        }
      size_t to = y.at(n, c, p);
      for (const formula::Taps<kTaps>& column : all[2]) {
        for (size_t r = 0; r < rows; ++r)
          for (int k = 0; k < kTaps; ++k)
            f(from[r] + static_cast<size_t>(column.at[k]) * x_step, to,
              weight[r] * column.weight[k]);
        to += y_step;
      }
    });
  }

  template <bool kIsGradient>
  static void reference(const KernelArgs& args, const Resize& attrs) {
    with_type_of(args.in[0], [&]<class T>(T) {
      sum_elements<T, kIsGradient>(
          args, [&](const Image& x, const Image& y, auto f) { each_source<T>(x, y, attrs, f); },
          std::multiplies<>());
    });
  }

  static double products(std::span<const TensorDesc>, std::span<const TensorDesc> out) {
    const int taps = out[0].shape.rank() == 5 ? kTaps * kTaps * kTaps : kTaps * kTaps;
    return 2 * taps * static_cast<double>(out[0].shape.elements());
  }
};

}  // namespace

Operators upsample_bilinear() {
  Operators out = Interpolation<2>::types();
  add(out, Interpolation<4>::types());
  return out;
}

}  // namespace dpt::operators
