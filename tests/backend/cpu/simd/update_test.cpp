// The fused updates against the double instantiation of the same formulas. That the formulas are
// PyTorch's is the business of the optimizers' own tests.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "backend/cpu/simd/optimizers.h"
#include "comm/tree.h"

namespace dpt {
namespace {

constexpr size_t kSize = 1100, kBegin = 5, kEnd = 1090;  // more than two tiles, odd ends
constexpr int kSteps = 100;

struct Buffers {
  std::vector<float> weight, state[3];
};
struct Reference {
  std::vector<double> weight, state[3];
};

// Runs 100 steps of update(args, t) and of formula(reference, i, gradient, t); returns the largest
// difference of the weights. Checks that nothing outside of the range was written.
template <class Update, class Formula>
double worst_of_training(int shard_count, double initial_state, Update update, Formula formula) {
  Numbers numbers(3);
  Buffers b{.weight = numbers.reals(kSize), .state = {}};
  Reference r{.weight = {b.weight.begin(), b.weight.end()}, .state = {}};
  for (auto& s : b.state) s.assign(kSize, static_cast<float>(initial_state));
  for (auto& s : r.state) s.assign(kSize, static_cast<double>(static_cast<float>(initial_state)));
  const std::vector<float> start = b.weight;
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<std::vector<float>> shards;
    for (int s = 0; s < shard_count; ++s) shards.push_back(numbers.reals(kSize));
    std::vector<const float*> pointers;
    for (const auto& s : shards) pointers.push_back(s.data());
    UpdateArgs args{.weight = b.weight.data(),
                    .shards = pointers.data(),
                    .shard_count = shard_count,
                    .begin = kBegin,
                    .end = kEnd};
    for (int s = 0; s < 3; ++s) args.state[s] = b.state[s].data();
    update(args, t);
    std::vector<float*> parts;
    for (auto& s : shards) parts.push_back(s.data());
    sum_tree(parts, 0, kSize);
    for (size_t i = kBegin; i < kEnd; ++i) formula(r, i, static_cast<double>(shards[0][i]), t);
  }
  double worst = 0;
  for (size_t i = 0; i < kSize; ++i) {
    if (i < kBegin || i >= kEnd) {
      CHECK(b.weight[i] == start[i]);
      for (const auto& s : b.state) CHECK(s[i] == static_cast<float>(initial_state));
    } else {
      worst = std::max(worst, std::abs(static_cast<double>(b.weight[i]) - r.weight[i]));
    }
  }
  return worst;
}

// Weights stay below 8, where a rounding is 2^-22; 100 steps of at most four roundings each.
constexpr double kRoundings = 100 * 4 * 2.4e-7;

template <class T>
formula::Sgd<T> sgd(T momentum, T dampening, bool nesterov, bool maximize, T decay, int t) {
  return {.lr = T(0.01),
          .momentum = momentum,
          .one_minus_dampening = 1 - dampening,
          .weight_decay = decay,
          .nesterov = nesterov,
          .maximize = maximize,
          .first_step = t == 1};
}

TEST_CASE("sgd") {
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const bool maximize : {false, true})
      for (const double decay : {0.0, 0.1}) {
        const auto run = [&](double momentum, double dampening, bool nesterov) {
          return worst_of_training(
              2, 0,
              [&](const UpdateArgs& args, int t) {
                update(*kernels, args,
                       sgd(static_cast<float>(momentum), static_cast<float>(dampening), nesterov,
                           maximize, static_cast<float>(decay), t));
              },
              [&](Reference& r, size_t i, double g, int t) {
                formula::sgd(sgd(momentum, dampening, nesterov, maximize, decay, t), r.weight[i],
                             &r.state[0][i], g);
              });
        };
        CAPTURE(kernels->name);
        CHECK(run(0, 0, false) < kRoundings);
        CHECK(run(0.9, 0, false) < kRoundings);
        CHECK(run(0.9, 0.5, false) < kRoundings);
        CHECK(run(0.9, 0, true) < kRoundings);
      }
}

template <class T>
formula::Adam<T> adam(bool amsgrad, bool maximize, double decay, double keep, int t) {
  return {.step_size = T(0.01 / (1 - std::pow(0.9, t))),
          .one_minus_beta1 = T(1 - 0.9),
          .beta2 = T(0.999),
          .one_minus_beta2 = T(1 - 0.999),
          .inverse_correction = T(1 / std::sqrt(1 - std::pow(0.999, t))),
          .eps = T(1e-8),
          .weight_decay = T(decay),
          .keep = T(keep),
          .amsgrad = amsgrad,
          .maximize = maximize};
}

TEST_CASE("adam and adam_w") {
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const int shards : {1, 2, 5})
      for (const bool amsgrad : {false, true})
        for (const bool maximize : {false, true})
          for (const bool decoupled : {false, true}) {
            CAPTURE(kernels->name);
            const double decay = decoupled ? 0 : 0.1, keep = decoupled ? 1 - 0.01 * 0.1 : 1;
            // Besides the roundings of the weights each step is off by 1e-6 of at most 0.03.
            CHECK(worst_of_training(
                      shards, 0,
                      [&](const UpdateArgs& args, int t) {
                        update(*kernels, args, adam<float>(amsgrad, maximize, decay, keep, t));
                      },
                      [&](Reference& r, size_t i, double g, int t) {
                        formula::adam(adam<double>(amsgrad, maximize, decay, keep, t), r.weight[i],
                                      r.state[0][i], r.state[1][i], &r.state[2][i], g);
                      }) < kRoundings + 100 * 0.03e-6);
          }
}

// One step from given moments, so that the step itself is seen and not the weight's rounding.
TEST_CASE("adam's step is within 1e-6 of itself, and right at the ends of the range") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const float eps : {1e-8F, 0.0F}) {
      Numbers numbers(5);
      std::vector<float> m, v, g(4096), w(4096);
      for (size_t i = 0; i < g.size(); ++i) {
        m.push_back(numbers.real() * std::ldexp(1.0F, static_cast<int>(i % 40) - 20));
        v.push_back(std::abs(numbers.real() + 1e-3F) *
                    std::ldexp(1.0F, static_cast<int>(i % 70) - 40));
      }
      if (eps > 0)
        v[0] = 0, v[1] = infinity, v[2] = 1e-42F, v[3] = std::numeric_limits<float>::quiet_NaN();
      formula::Adam<float> s{.step_size = 1,
                             .one_minus_beta1 = 0,
                             .beta2 = 1,
                             .one_minus_beta2 = 0,
                             .inverse_correction = 1.5F,
                             .eps = eps};
      const std::vector<float> m0 = m, v0 = v;
      const float* shard = g.data();
      update(*kernels,
             {.weight = w.data(),
              .state = {m.data(), v.data(), nullptr},
              .shards = &shard,
              .shard_count = 1,
              .end = g.size()},
             s);
      for (size_t i = 0; i < g.size(); ++i) {
        CAPTURE(kernels->name);
        CAPTURE(i);
        const double step =
            static_cast<double>(m0[i]) /
            (std::sqrt(static_cast<double>(v0[i])) * 1.5 + static_cast<double>(eps));
        if (std::isnan(step)) {
          CHECK(std::isnan(w[i]));
        } else {
          CHECK(std::abs(static_cast<double>(w[i]) + step) <= 1e-6 * std::abs(step) + 1e-37);
        }
      }
    }
}

// Weights -1 / sqrt(v): where a root's last bit is wrong, so is most often that of the weight.
void check_roots(const SimdKernels& kernels, std::vector<float> v) {
  const formula::Adam<float> s{.step_size = 1,
                               .one_minus_beta1 = 0,
                               .beta2 = 1,
                               .one_minus_beta2 = 0,
                               .inverse_correction = 1,
                               .eps = 0};
  std::vector<float> m(v.size(), 1), g(v.size()), w(v.size());
  const float* shard = g.data();
  update(kernels,
         {.weight = w.data(),
          .state = {m.data(), v.data(), nullptr},
          .shards = &shard,
          .shard_count = 1,
          .end = g.size()},
         s);
  size_t wrong = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    float wanted = 0, mean = 1, square = v[i];
    formula::adam<float>(s, wanted, mean, square, nullptr, 0.0F);
    if (w[i] != wanted && !(std::isnan(w[i]) && std::isnan(wanted))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("adam's roots have the bits of sqrt: all floats of [1, 4), and some of every size") {
  for (const SimdKernels* kernels : isas_of_this_cpu()) {
    CAPTURE(kernels->name);
    constexpr uint32_t kOne = 0x3F800000, kFour = 0x40800000, kPart = 1 << 20;
    for (uint32_t begin = kOne; begin < kFour; begin += kPart) {
      std::vector<float> v(kPart);
      for (uint32_t i = 0; i < kPart; ++i) v[i] = std::bit_cast<float>(begin + i);
      check_roots(*kernels, std::move(v));
    }
    std::vector<float> v = {0, -0.0F, -1, std::numeric_limits<float>::infinity()};
    for (uint32_t bits = 1; bits < 0x7F800000; bits += 4099)
      v.push_back(std::bit_cast<float>(bits));
    check_roots(*kernels, std::move(v));
  }
}

TEST_CASE("rms_prop") {
  const auto scalars = [](auto type, bool centered, double momentum, bool maximize) {
    using T = decltype(type);
    return formula::RmsProp<T>{.lr = T(0.01),
                               .alpha = T(0.9),
                               .one_minus_alpha = T(1 - 0.9),
                               .eps = T(1e-4),
                               .momentum = T(momentum),
                               .weight_decay = T(0.1),
                               .centered = centered,
                               .maximize = maximize};
  };
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const bool centered : {false, true})
      for (const double momentum : {0.0, 0.5})
        for (const bool maximize : {false, true}) {
          CAPTURE(kernels->name);
          CAPTURE(centered);
          const double worst = worst_of_training(
              2, 0,
              [&](const UpdateArgs& args, int) {
                update(*kernels, args, scalars(0.0F, centered, momentum, maximize));
              },
              [&](Reference& r, size_t i, double g, int) {
                formula::rms_prop(scalars(0.0, centered, momentum, maximize), r.weight[i],
                                  r.state[0][i], &r.state[1][i], &r.state[2][i], g);
              });
          // centered takes the root of a difference: the first steps lose some digits
          CHECK(worst < (centered ? 20 : 1) * kRoundings);
        }
}

TEST_CASE("adagrad and adadelta") {
  const auto adagrad = [](auto type, int t) {
    using T = decltype(type);
    return formula::Adagrad<T>{.clr = T(0.1 / (1 + (t - 1) * 0.01)),
                               .eps = T(1e-10),
                               .weight_decay = T(0.1),
                               .maximize = t % 2 == 0};
  };
  const auto adadelta = [](auto type) {
    using T = decltype(type);
    return formula::Adadelta<T>{.lr = 1,
                                .rho = T(0.9),
                                .one_minus_rho = T(1 - 0.9),
                                .eps = T(1e-6),
                                .weight_decay = T(0.1)};
  };
  for (const SimdKernels* kernels : isas_of_this_cpu()) {
    CAPTURE(kernels->name);
    CHECK(worst_of_training(
              3, 0.1,
              [&](const UpdateArgs& args, int t) { update(*kernels, args, adagrad(0.0F, t)); },
              [&](Reference& r, size_t i, double g, int t) {
                formula::adagrad(adagrad(0.0, t), r.weight[i], r.state[0][i], g);
              }) < kRoundings);
    CHECK(worst_of_training(
              2, 0, [&](const UpdateArgs& args, int) { update(*kernels, args, adadelta(0.0F)); },
              [&](Reference& r, size_t i, double g, int) {
                formula::adadelta(adadelta(0.0), r.weight[i], r.state[0][i], r.state[1][i], g);
              }) < kRoundings);
  }
}

TEST_CASE("adamax, n_adam and r_adam") {
  const auto adamax = [](auto type, int t) {
    using T = decltype(type);
    return formula::Adamax<T>{.clr = T(0.01 / (1 - std::pow(0.9, t))),
                              .one_minus_beta1 = T(1 - 0.9),
                              .beta2 = T(0.99),
                              .eps = T(1e-8),
                              .weight_decay = T(0.1),
                              .maximize = t % 2 == 0};
  };
  const auto n_adam = [](auto type, int t) {
    using T = decltype(type);
    return formula::NAdam<T>{.gradient_step = T(0.004),
                             .average_step = T(0.01),
                             .one_minus_beta1 = T(1 - 0.9),
                             .beta2 = T(0.999),
                             .one_minus_beta2 = T(1 - 0.999),
                             .correction2 = T(1 - std::pow(0.999, t)),
                             .eps = T(1e-8),
                             .weight_decay = T(t % 2 == 0 ? 0.1 : 0),
                             .keep = T(t % 2 == 0 ? 1 : 0.999)};
  };
  const auto r_adam = [](auto type, int t) {
    using T = decltype(type);
    return formula::RAdam<T>{.lr = T(0.01),
                             .one_minus_beta1 = T(1 - 0.9),
                             .beta2 = T(0.999),
                             .one_minus_beta2 = T(1 - 0.999),
                             .correction1 = T(1 - std::pow(0.9, t)),
                             .root_of_correction2 = T(std::sqrt(1 - std::pow(0.999, t))),
                             .rectification = T(0.5),
                             .eps = T(1e-8),
                             .weight_decay = T(t % 2 == 0 ? 0.1 : 0),
                             .keep = T(t % 2 == 0 ? 1 : 0.999),
                             .rectified = t > 5};
  };
  for (const SimdKernels* kernels : isas_of_this_cpu()) {
    CAPTURE(kernels->name);
    const auto worst = [&](auto scalars) {
      return worst_of_training(
          3, 0, [&](const UpdateArgs& args, int t) { update(*kernels, args, scalars(0.0F, t)); },
          [&](Reference& r, size_t i, double g, int t) {
            double* const state[] = {&r.state[0][i], &r.state[1][i]};
            formula::update(scalars(0.0, t), r.weight[i], state, g);
          });
    };
    // Besides the roundings of the weights each step is off by 1e-6 of at most 0.03.
    CHECK(worst(adamax) < kRoundings + 100 * 0.03e-6);
    CHECK(worst(n_adam) < kRoundings + 100 * 0.03e-6);
    CHECK(worst(r_adam) < kRoundings + 100 * 0.03e-6);
  }
}

TEST_CASE("rprop") {
  const auto rprop = [](auto type, int t) {
    using T = decltype(type);
    return formula::Rprop<T>{.lr = T(0.01),
                             .etaminus = T(0.5),
                             .etaplus = T(1.2),
                             .step_size_min = T(1e-3),
                             .step_size_max = T(0.05),
                             .maximize = false,
                             .first_step = t == 1};
  };
  for (const SimdKernels* kernels : isas_of_this_cpu()) {
    CAPTURE(kernels->name);
    CHECK(worst_of_training(
              2, 0, [&](const UpdateArgs& args, int t) { update(*kernels, args, rprop(0.0F, t)); },
              [&](Reference& r, size_t i, double g, int t) {
                formula::rprop(rprop(0.0, t), r.weight[i], r.state[0][i], r.state[1][i], g);
              }) < kRoundings);
  }
}

TEST_CASE("asgd") {
  const auto asgd = [](auto type, int t) {
    using T = decltype(type);
    return formula::Asgd<T>{.eta = T(0.01),
                            .keep = T(1 - 1e-4),
                            .mu = T(1.0 / std::max(1, t - 5)),
                            .weight_decay = T(0.1),
                            .maximize = t % 2 == 0};
  };
  for (const SimdKernels* kernels : isas_of_this_cpu()) {
    CAPTURE(kernels->name);
    CHECK(worst_of_training(
              1, 0, [&](const UpdateArgs& args, int t) { update(*kernels, args, asgd(0.0F, t)); },
              [&](Reference& r, size_t i, double g, int t) {
                formula::asgd(asgd(0.0, t), r.weight[i], r.state[0][i], g);
              }) < kRoundings);
  }
}

TEST_CASE("the gradient is scaled, limited and stored before the update") {
  for (const SimdKernels* kernels : isas_of_this_cpu()) {
    CAPTURE(kernels->name);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> w(5, 10), a = {1, 4, -6, 0.5F, nan}, b = {1, 2, -6, 0, 1}, sum(5);
    const float* shards[] = {a.data(), b.data()};
    update(*kernels,
           {.weight = w.data(),
            .shards = shards,
            .shard_count = 2,
            .sum_out = sum.data(),
            .grad_scale = 0.5F,
            .clip_value = 2.5F,
            .end = 5},
           formula::Sgd<float>{.lr = 2, .maximize = true});
    CHECK(std::vector<float>(sum.begin(), sum.end() - 1) ==
          std::vector<float>{1, 2.5F, -2.5F, 0.25F});
    CHECK(std::vector<float>(w.begin(), w.end() - 1) == std::vector<float>{12, 15, 5, 10.5F});
    CHECK(std::isnan(sum[4]));
    CHECK(std::isnan(w[4]));
  }
}

}  // namespace
}  // namespace dpt
