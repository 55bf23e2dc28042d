// The evaluation of kTinySpec's model, one linear layer from 4 pixels to 10 classes with
// set_some_weights(), in plain double precision.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "engine/some_weights.h"
#include "engine/step_executor.h"
#include "session/session.h"

namespace dpt {

// Devices compute logits of size 1 in floats, whose precision is 6e-8: a few sums are this far off.
inline constexpr double kEvaluatedTolerance = 2e-6;

struct EvaluatedSample {
  double loss;
  size_t target;
  bool correct;
};

inline std::vector<EvaluatedSample> samples_by_hand(const Session& session) {
  constexpr size_t kPixels = 4, kClasses = 10;
  const std::vector<uint32_t> order = session.data.test_order();
  std::vector<float> pixels(order.size() * kPixels);
  std::vector<int32_t> targets(order.size());
  REQUIRE(session.data.test_loader->input().shape.elements() == kPixels);
  session.data.test_loader->inputs(order, pixels.data());
  session.data.test_loader->targets(order, targets.data());
  std::vector<EvaluatedSample> out;
  for (size_t s = 0; s < order.size(); ++s) {
    std::array<double, kClasses> logits{};
    for (size_t c = 0; c < kClasses; ++c) {
      logits[c] = some_weight(kClasses * kPixels + c);
      for (size_t i = 0; i < kPixels; ++i)
        logits[c] += static_cast<double>(some_weight(c * kPixels + i)) *
                     static_cast<double>(pixels[s * kPixels + i]);
    }
    double sum = 0;
    for (const double l : logits) sum += std::exp(l);
    const auto target = static_cast<size_t>(targets[s]);
    const auto best = static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
    out.push_back({std::log(sum) - logits[target], target, best == target});
  }
  return out;
}

// weights: of the classes; empty: all are 1.
inline Evaluation evaluated_by_hand(const Session& session,
                                    const std::vector<double>& weights = {}) {
  const std::vector<EvaluatedSample> samples = samples_by_hand(session);
  double loss = 0, divisor = 0, correct = 0;
  for (const EvaluatedSample& s : samples) {
    const double weight = weights.empty() ? 1 : weights[s.target];
    loss += weight * s.loss;
    divisor += weight;
    correct += s.correct ? 1 : 0;
  }
  return {.loss = loss / divisor, .accuracy = correct / static_cast<double>(samples.size())};
}

// What would be found if a smaller last batch counted as much as the others.
inline double mean_of_batch_means(const Session& session, size_t batch) {
  const std::vector<EvaluatedSample> samples = samples_by_hand(session);
  double sum = 0, batches = 0;
  for (size_t begin = 0; begin < samples.size(); begin += batch, ++batches) {
    const size_t end = std::min(samples.size(), begin + batch);
    double losses = 0;
    for (size_t s = begin; s < end; ++s) losses += samples[s].loss;
    sum += losses / static_cast<double>(end - begin);
  }
  return sum / batches;
}

}  // namespace dpt
