// Kernels of losses on lines that fill several rounds of a block's threads, on the fake GPU.
#include <cmath>
#include <limits>
#include <string>
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

}  // namespace
}  // namespace dpt::cuda
