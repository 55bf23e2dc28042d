#include "graph/formulas/activations.h"

#include "graph/attrs.h"
#include "graph/samples/samples.h"

namespace dpt {
namespace {

template <class F>
Samples pointwise() {
  const formula::ActivationRow& row = F::kRow;
  const std::vector<double> kinks(std::begin(row.kinks), std::end(row.kinks));
  const Sample::Range range = {row.low, row.high};
  if constexpr (formula::kParametersOf<F> == 0) {
    return elementwise_samples(row.name, 1, {}, range, kinks);
  } else {
    Samples out;
    for (const auto& values : F::kSamples)
      out += elementwise_samples(row.name, 1, formula::with_parameters<F>(values), range, kinks);
    return out;
  }
}

template <class... F>
Samples pointwise(formula::FormulaList<F...>) {
  Samples out;
  ((out += pointwise<F>()), ...);
  return out;
}

Samples softmax(std::string_view op) {
  Samples out;
  const auto add = [&](Shape s, int dim) {
    out.push_back(sample(op, {f32(s)}, Softmax{dim}, {{-5, 5}}));
  };
  add({3, 5}, 1);
  add({2, 1}, 1);
  add({5, 10}, 1);
  add({3, 37}, 1);
  add({2, 3, 4}, 1);
  add({2, 3, 17}, 2);
  add({1, 70, 5}, 1);
  return out;
}

Samples glu() {
  return {sample("glu", {f32({3, 6})}, Glu{1}), sample("glu", {f32({2, 34, 3})}, Glu{1}),
          sample("glu", {f32({2, 3, 10})}, Glu{2}), sample("glu", {f32({1, 2, 4, 5})}, Glu{2})};
}

Samples dropout() {
  Samples out;
  const auto add = [&](Shape s, double p, bool channels = false) {
    out.push_back(sample("dropout", {f32(s)}, Dropout{.p = p, .key = 7, .channels = channels}));
  };
  for (const Shape& s : {Shape{3, 5}, Shape{2, 200}, Shape{2, 3, 67}})
    for (const double p : {0.5, 0.1}) add(s, p);
  add({3, 5}, 0);
  add({3, 5}, 1);
  add({2, 5, 7}, 0.3, true);
  add({2, 67, 3, 2}, 0.3, true);
  return out;
}

Samples prelu() {
  Samples out;
  const auto add = [&](Shape x, int64_t weights) {
    out.push_back(sample("prelu", {f32(x), f32({weights})}, {}, {{-4, 4}}, {0}));
  };
  add({3, 5}, 1);
  add({2, 33}, 33);
  add({2, 3, 4, 5}, 3);
  add({2, 17, 3}, 17);
  add({2, 3, 7}, 1);
  return out;
}

}  // namespace

Samples activation_samples() {
  Samples out = pointwise(formula::Activations{});
  for (const std::string_view op : {"softmax", "log_softmax"}) out += softmax(op);
  out += glu();
  out += dropout();
  return out += prelu();
}

}  // namespace dpt
