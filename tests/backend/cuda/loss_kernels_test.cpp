// Kernels of losses on lines that fill several rounds of a block's threads, on the fake GPU.
#include <algorithm>
#include <any>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cuda/on_fakes.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = NAN;

TEST_CASE("a block finds the first nan or the first of equal maxima of a long line") {
  struct Line {
    std::vector<std::pair<int, float>> elements;  // all others are 0
    int best;
  };
  constexpr int kClasses = 1000;
  const std::vector<Line> lines = {{{{700, 2.F}}, 700},
                                   {{{999, 2.F}, {743, 2.F}, {487, 2.F}}, 487},
                                   {{{5, 3.F}, {261, 3.F}}, 5},
                                   {{{0, -1.F}}, 1},
                                   {{{0, -0.F}, {1, 0.F}}, 0},
                                   {{{3, kInf}, {900, kNan}}, 900},
                                   {{{900, kNan}, {899, kNan}, {100, kInf}}, 899},
                                   {{{0, kNan}, {1, kNan}}, 0},
                                   {{{999, kInf}, {998, kInf}}, 998}};
  for (const int dim : {1, 2}) {
    CAPTURE(dim);
    const auto n = static_cast<int64_t>(lines.size());
    // Lines along dimension 2 are adjacent; along dimension 1 they alternate with lines of 1s.
    const Shape x = dim == 2 ? Shape{1, n, kClasses} : Shape{n, kClasses, 2};
    const Shape y = dim == 2 ? Shape{1, n} : Shape{n, 2};
    const KernelQuery q{"count_correct",
                        {{DType::f32, x}, {DType::i32, y}},
                        {{DType::f64, {1}}},
                        CountCorrect{.dim = dim, .ignore_index = 5}};
    const size_t step = dim == 2 ? 1 : 2;
    std::vector<HostTensor> in = {HostTensor(q.in[0]), HostTensor(q.in[1])};
    for (size_t i = 0; i < in[0].size(); ++i) in[0].set(i, step == 2 && i % 2 == 1 ? 1 : 0);
    for (size_t i = 0; i < in[1].size(); ++i) in[1].set(i, 7);  // wrong everywhere
    for (size_t l = 0; l < lines.size(); ++l) {
      for (const auto& [c, v] : lines[l].elements)
        in[0].set((l * kClasses + static_cast<size_t>(c)) * step, v);
      in[1].set(l * step, lines[l].best);
    }
    const double expected = run_reference(op(q.op), in, q.attrs)[0].get(0);
    CHECK(expected == static_cast<double>(lines.size()) - 1);  // one class is ignored
    OnFakes run = run_on_fakes(q, in);
    CHECK(run.out.at(0).get(0) == expected);
    CHECK(run.calls.find("CorrectLines") != std::string::npos);
    in[1].set(0, lines[0].best - 1);
    CHECK(run_on_fakes(q, in).out.at(0).get(0) == expected - 1);
  }
}

TEST_CASE("a line of nothing but -inf has its first class as argmax") {
  const KernelQuery q{"count_correct",
                      {{DType::f32, {2, 300}}, {DType::i32, {2}}},
                      {{DType::f64, {1}}},
                      CountCorrect{}};
  std::vector<HostTensor> in = {HostTensor(q.in[0]), HostTensor(q.in[1])};
  for (size_t i = 0; i < in[0].size(); ++i) in[0].set(i, -kInf);
  in[1].set(0, 0), in[1].set(1, 299);
  CHECK(run_reference(op(q.op), in, q.attrs)[0].get(0) == 1);
  CHECK(run_on_fakes(q, in).out.at(0).get(0) == 1);
}

// Exponentials in float and their sum (Note [exp sums] in kernels/softmax.h) differ from the
// reference's, which are in double, by less than 1e-6 of a probability. A loss or a logarithm
// differs by as much, and by the rounding of an f32 result.
void check_close(HostTensor& found, HostTensor& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double x = found.get(i), y = expected.get(i);
    const bool close = std::isfinite(y) ? std::fabs(x - y) <= 1e-6 * std::max(1.0, std::fabs(y))
                                        : x == y || (std::isnan(x) && std::isnan(y));
    if (!close) FAIL("element " << i << " is " << x << ", not " << y);
  }
}

// Compares one operator with its reference on lines [lines, classes] around `offset`.
struct LineTest {
  int64_t classes;
  double offset = 0, spread = 3;
  std::vector<std::pair<size_t, float>> replaced = {};  // elements of the first line

  HostTensor lines(uint32_t seed) const {
    std::mt19937 random(seed);
    HostTensor x({DType::f32, {3, classes}});
    for (size_t i = 0; i < x.size(); ++i)
      x.set(i, std::normal_distribution<double>(offset, spread)(random));
    for (const auto& [i, v] : replaced) x.set(i, v);
    return x;
  }
  static void compare(std::string_view op_name, std::vector<HostTensor> in, const TensorDesc& out,
                      const std::any& attrs) {
    KernelQuery q{op_name, {}, {out}, attrs};
    for (const HostTensor& t : in) q.in.push_back(t.desc);
    std::vector<HostTensor> expected = run_reference(op(op_name), in, attrs);
    check_close(run_on_fakes(q, in).out.at(0), expected[0]);
  }
  void losses(const CrossEntropy& attrs, bool weighted) const {
    HostTensor classes_of({DType::i32, {3}}), divisor({DType::f32, {1}}),
        probabilities({DType::f32, {3, classes}}), weight({DType::f32, {classes}});
    for (size_t i = 0; i < 3; ++i)
      classes_of.set(i, static_cast<double>(static_cast<int64_t>(i) * (classes - 1) / 2));
    divisor.set(0, 2);
    for (size_t i = 0; i < probabilities.size(); ++i)
      probabilities.set(i, 0.5 / static_cast<double>(1 + i % 7));
    for (size_t i = 0; i < weight.size(); ++i) weight.set(i, i % 3 == 1 ? 0 : 0.5);
    for (const bool of_classes : {true, false}) {
      CAPTURE(of_classes);
      std::vector<HostTensor> in = {lines(1), of_classes ? classes_of : probabilities, divisor};
      if (weighted) in.push_back(weight);
      compare("cross_entropy", in, {DType::f64, {1}}, attrs);
      compare("cross_entropy_gradient", in, in[0].desc, attrs);
    }
  }
  void all() const {
    CAPTURE(classes);
    CAPTURE(offset);
    for (const double smoothing : {0.0, 0.1})
      for (const bool weighted : {false, true}) {
        CAPTURE(smoothing);
        CAPTURE(weighted);
        losses({.label_smoothing = smoothing}, weighted);
      }
    losses({.ignore_index = 0}, false);
    for (const std::string_view name : {"softmax", "log_softmax"})
      compare(name, {lines(2)}, {DType::f32, {3, classes}}, Softmax{1});
  }
};

TEST_CASE("softmax and cross entropy of long lines agree with the reference") {
  for (const int64_t classes : {1, 127, 128, 513, 3000}) LineTest{classes}.all();
  LineTest{.classes = 1000, .offset = 3000}.all();
  LineTest{.classes = 1000, .offset = -3000}.all();
  LineTest{.classes = 1000, .spread = 1e4}.all();
}

TEST_CASE("softmax and cross entropy of lines with inf and nan agree with the reference") {
  for (const float v : {kInf, -kInf, kNan})
    for (const size_t at : {0, 1, 600, 999}) {
      CAPTURE(v);
      CAPTURE(at);
      LineTest{.classes = 1000, .replaced = {{at, v}}}.all();
    }
  LineTest all{.classes = 300};
  for (size_t i = 0; i < 300; ++i) all.replaced.emplace_back(i, -kInf);
  all.all();
}

}  // namespace
}  // namespace dpt::cuda
