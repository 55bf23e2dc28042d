// upsample_bilinear: y[N, C, H', W'] by linear interpolation of x[N, C, H, W] along rows and
// columns (graph/formulas/resample.h). Positions are computed in the type of x, as by PyTorch.
//   upsample_bilinear_gradient(dy) -> dx[N, C, Resize::extents]
// upsample_bicubic: the same by cubic convolution.
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
             .gradient = gradient,
             .reference = typed<forward>,
             .flops = products,
             .layouts = Layouts::images},
            {.name = kGradient,
             .precision = Precision::follow,
             .infer = typed<infer_gradient>,
             .reference = typed<backward>,
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
  static std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n,
                                       std::span<const ValueId> dy) {
    Resize s = settings<Resize>(n.attrs);
    s.extents = Image(g.shape(n.in[0])).extents();
    return {g.apply(kGradient, {dy[0]}, s)};
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
    const auto rows = taps<T>(x.h, y.h, s.scale[0], s.align_corners),
               columns = taps<T>(x.w, y.w, s.scale[1], s.align_corners);
    y.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      const auto &row = rows[static_cast<size_t>(h)], &column = columns[static_cast<size_t>(w)];
      for (int i = 0; i < kTaps; ++i)
        for (int k = 0; k < kTaps; ++k)
          f(x.at(n, c, row.at[i], column.at[k]), y.at(n, c, h, w),
            row.weight[i] * column.weight[k]);
    });
  }

  static void forward(const KernelArgs& args, const Resize& attrs) {
    with_type_of(args.in[0], [&]<class T>(T) {
      const auto x = args.in[0].as<const T>();
      std::vector<double> y(static_cast<size_t>(args.out[0].desc.shape.elements()));
      each_source<T>(
          Image(args.in[0]), Image(args.out[0]), attrs,
          [&](size_t i, size_t k, double weight) { y[k] += weight * static_cast<double>(x[i]); });
      store(y, args.out[0].as<T>());
    });
  }
  static void backward(const KernelArgs& args, const Resize& attrs) {
    with_type_of(args.in[0], [&]<class T>(T) {
      const auto dy = args.in[0].as<const T>();
      std::vector<double> dx(static_cast<size_t>(args.out[0].desc.shape.elements()));
      each_source<T>(
          Image(args.out[0]), Image(args.in[0]), attrs,
          [&](size_t i, size_t k, double weight) { dx[i] += weight * static_cast<double>(dy[k]); });
      store(dx, args.out[0].as<T>());
    });
  }

  static double products(std::span<const TensorDesc>, std::span<const TensorDesc> out) {
    return 2 * kTaps * kTaps * static_cast<double>(out[0].shape.elements());
  }
};

}  // namespace

Operators upsample_bilinear() {
  Operators out = Interpolation<2>::types();
  add(out, Interpolation<4>::types());
  return out;
}

}  // namespace dpt::operators
