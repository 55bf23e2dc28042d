// Updates and sums over shards, of ranges that nobody chose, on every instruction set. More of
// them: DPT_FUZZ_SHAPES and DPT_FUZZ_SEED, see graph/fuzzed_samples.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "backend/cpu/simd/optimizers.h"
#include "comm/tree.h"
#include "graph/fuzzed_samples.h"
#include "graph/optimizer_step.h"

namespace dpt {
namespace {

using Floats = std::vector<float>;

size_t below(Numbers& n, size_t limit) { return n.next() % limit; }

// Buffers of `size` elements, of which [begin, end) is updated; shards begin at `first`.
struct Ranges {
  size_t first, size, begin, end;
  explicit Ranges(Numbers& n) {
    constexpr size_t kSizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 511, 513, 1025};
    first = below(n, 3) * below(n, 40);
    size = kSizes[below(n, std::size(kSizes))] + below(n, 2) * below(n, 600);
    begin = std::min(size, below(n, 2) * below(n, 20));
    end = size - std::min(size - begin, below(n, 2) * below(n, 20));
    begin += first;
    end += first;
  }
};

OptimizerStep drawn_relative_of_adam(Numbers& n, bool rectified, double decay, bool maximize) {
  const double keep = below(n, 2) == 1 ? 0.99 : 1;
  switch (below(n, 3)) {
    case 0:
      return formula::Adamax<double>{.clr = 0.1,
                                     .one_minus_beta1 = 0.1,
                                     .beta2 = 0.99,
                                     .eps = 1e-8,
                                     .weight_decay = decay,
                                     .maximize = maximize};
    case 1:
      return formula::NAdam<double>{.gradient_step = 0.1,
                                    .average_step = 0.2,
                                    .one_minus_beta1 = 0.1,
                                    .beta2 = 0.99,
                                    .one_minus_beta2 = 0.01,
                                    .correction2 = 0.5,
                                    .eps = 1e-8,
                                    .weight_decay = decay,
                                    .keep = keep,
                                    .maximize = maximize};
    default:
      return formula::RAdam<double>{.lr = 0.1,
                                    .one_minus_beta1 = 0.1,
                                    .beta2 = 0.99,
                                    .one_minus_beta2 = 0.01,
                                    .correction1 = 0.5,
                                    .root_of_correction2 = 0.25,
                                    .rectification = 0.5,
                                    .eps = 1e-8,
                                    .weight_decay = decay,
                                    .keep = keep,
                                    .rectified = rectified,
                                    .maximize = maximize};
  }
}

OptimizerStep drawn_step(Numbers& n) {
  const auto yes = [&] { return below(n, 2) == 1; };
  const double decay = yes() ? 0.1 : 0;
  const double momentum = yes() ? 0.9 : 0;
  switch (below(n, 11)) {
    case 0:
      return formula::Sgd<double>{.lr = 0.1,
                                  .momentum = momentum,
                                  .one_minus_dampening = yes() ? 1 : 0.5,
                                  .weight_decay = decay,
                                  .nesterov = momentum > 0 && yes(),
                                  .maximize = yes(),
                                  .first_step = yes()};
    case 1:
      return formula::Adam<double>{.step_size = 0.1,
                                   .one_minus_beta1 = 0.1,
                                   .beta2 = 0.99,
                                   .one_minus_beta2 = 0.01,
                                   .inverse_correction = 1.5,
                                   .eps = 1e-8,
                                   .weight_decay = decay,
                                   .keep = yes() ? 0.99 : 1,
                                   .amsgrad = yes(),
                                   .maximize = yes()};
    case 2:
      return formula::RmsProp<double>{.lr = 0.1,
                                      .alpha = 0.9,
                                      .one_minus_alpha = 0.1,
                                      .eps = 1e-4,
                                      .momentum = momentum,
                                      .weight_decay = decay,
                                      .centered = yes(),
                                      .maximize = yes()};
    case 3:
      return formula::Adagrad<double>{
          .clr = 0.1, .eps = 1e-10, .weight_decay = decay, .maximize = yes()};
    case 4:
      return formula::Rprop<double>{.lr = 0.1,
                                    .etaminus = 0.5,
                                    .etaplus = 1.2,
                                    .step_size_min = 0.01,
                                    .step_size_max = 0.5,
                                    .maximize = yes(),
                                    .first_step = yes()};
    case 5:
      return formula::Asgd<double>{.eta = 0.1,
                                   .keep = 0.99,
                                   .mu = yes() ? 0.25 : 1,
                                   .weight_decay = decay,
                                   .maximize = yes()};
    case 8:
      return formula::Lion<double>{.lr = 0.1,
                                   .beta1 = 0.9,
                                   .one_minus_beta1 = 0.1,
                                   .beta2 = 0.99,
                                   .one_minus_beta2 = 0.01,
                                   .keep = yes() ? 0.99 : 1};
    case 9:
      return formula::Muon<double>{
          .momentum = 0.9, .one_minus_momentum = 0.1, .nesterov = yes(), .a = 3, .b = -4, .c = 2};
    case 6:
    case 7:
      return drawn_relative_of_adam(n, yes(), decay, yes());
    default:
      return formula::Adadelta<double>{.lr = 1,
                                       .rho = 0.9,
                                       .one_minus_rho = 0.1,
                                       .eps = 1e-6,
                                       .weight_decay = decay,
                                       .maximize = yes()};
  }
}

// The kernel of a step, or its formula for one element.
struct Update {
  const SimdKernels& k;
  const UpdateArgs& a;
  template <class F>
  void operator()(const F& s) {
    update(k, a, rounded<float>(s));
  }
};
struct Formula {
  float &w, &a, &b, &c, g;
  template <class F>
  void operator()(const F& s) {
    float* const state[] = {&a, &b, &c};
    formula::update(rounded<float>(s), w, state, g);
  }
};

// Weights, three states and the stored sum of gradients, all of which a step may change.
struct Memory {
  std::array<Floats, 5> buffer;
  bool operator==(const Memory&) const = default;
};

void by_formula(Memory& m, const std::vector<Floats>& shards, const UpdateArgs& a,
                const OptimizerStep& step) {
  std::vector<Floats> summed = shards;
  std::vector<float*> parts;
  for (Floats& s : summed) parts.push_back(s.data());
  sum_tree(parts, 0, summed[0].size());
  for (size_t i = a.begin; i < a.end; ++i) {
    float g = summed[0][i - a.first] * a.grad_scale;
    if (a.clip_value > 0) g = std::clamp(g, -a.clip_value, a.clip_value);
    if (a.sum_out != nullptr) m.buffer[4][i - a.first] = g;
    std::visit(Formula{m.buffer[0][i], m.buffer[1][i], m.buffer[2][i], m.buffer[3][i], g}, step);
  }
}

std::vector<const float*> pointers(const std::vector<Floats>& all) {
  std::vector<const float*> out;
  for (const Floats& f : all) out.push_back(f.data());
  return out;
}

std::vector<Floats> drawn_shards(Numbers& n, size_t size, bool whole) {
  std::vector<Floats> shards(1 + below(n, 9));
  for (Floats& s : shards) s = whole ? n.integers(size) : n.reals(size);
  return shards;
}

}  // namespace

TEST_CASE("an update of any range has the formula's bits and leaves what is around it") {
  Numbers n(fuzz_setting("DPT_FUZZ_SEED", 1));
  for (uint64_t i = 0; i < 5 * fuzz_setting("DPT_FUZZ_SHAPES", 60); ++i) {
    const Ranges r(n);
    const std::vector<Floats> shards = drawn_shards(n, r.size, false);
    const std::vector<const float*> from = pointers(shards);
    const OptimizerStep step = drawn_step(n);
    Memory start;
    for (Floats& b : start.buffer) b = n.reals(r.first + r.size);
    for (float& x : start.buffer[1]) x += 2;  // no square of a mean above the mean of squares
    for (size_t s : {2U, 3U})                 // some squares are 0
      for (float& x : start.buffer[s]) x = std::max(0.0F, x);
    UpdateArgs a{.shards = from.data(),
                 .shard_count = static_cast<int>(shards.size()),
                 .first = r.first,
                 .grad_scale = below(n, 2) == 0 ? 1 : 0.7F,
                 .clip_value = below(n, 3) == 0 ? 0.5F : 0,
                 .begin = r.begin,
                 .end = r.end};
    const bool stores = below(n, 2) == 1;
    const auto bind = [&](Memory& m) {
      a.weight = m.buffer[0].data();
      for (size_t s = 0; s < 3; ++s) a.state[s] = m.buffer[s + 1].data();
      a.sum_out = stores ? m.buffer[4].data() : nullptr;
    };
    Memory expected = start;
    bind(expected);
    by_formula(expected, shards, a, step);
    for (const SimdKernels* kernels : isas_of_this_cpu()) {
      CAPTURE(kernels->name);
      CAPTURE(step.index());
      CAPTURE(i);
      CAPTURE(r.begin);
      CAPTURE(r.end);
      Memory got = start;
      bind(got);
      std::visit(Update{*kernels, a}, step);
      REQUIRE(got == expected);
    }
  }
}

TEST_CASE("whole numbers are summed exactly, over shards and as squares, in any range") {
  Numbers n(fuzz_setting("DPT_FUZZ_SEED", 1));
  for (uint64_t i = 0; i < 5 * fuzz_setting("DPT_FUZZ_SHAPES", 60); ++i) {
    const Ranges r(n);
    const std::vector<Floats> shards = drawn_shards(n, r.first + r.size, true);
    const Floats long_one = n.integers(below(n, 3) * kSquareChunk + r.size);
    const size_t chunks = (long_one.size() + kSquareChunk - 1) / kSquareChunk;
    Floats expected(r.first + r.size, -7);
    const Floats before = expected;
    for (size_t e = r.begin; e < r.end; ++e) {
      expected[e] = 0;
      for (const Floats& s : shards) expected[e] += s[e];
    }
    for (const SimdKernels* kernels : isas_of_this_cpu()) {
      CAPTURE(kernels->name);
      CAPTURE(i);
      Floats got = before;
      kernels->sum_shards_range(got.data(), pointers(shards).data(),
                                static_cast<int>(shards.size()), r.begin, r.end);
      REQUIRE(got == expected);
      std::vector<double> partial(chunks);
      kernels->sum_squares(long_one.data(), long_one.size(), 0, chunks, partial.data());
      REQUIRE(std::accumulate(partial.begin(), partial.end(), 0.0) ==
              std::inner_product(long_one.begin(), long_one.end(), long_one.begin(), 0.0));
    }
  }
}

}  // namespace dpt
