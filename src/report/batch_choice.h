// Chooses a batch size by measuring some (`data.batch_size: auto`).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dpt {

// What a batch size was measured at.
struct BatchTrial {
  int64_t batch = 0;
  double samples_per_second = 0;
  std::string refused{};  // why it cannot run, such as for lack of memory; empty: it ran
};

struct BatchLimits {
  int64_t samples = 1;  // of the training set
  int64_t unit = 1;     // a batch is a multiple of it: replicas times micro-batches
};

// The sizes to measure: doublings of the smallest multiple of `unit` from 16 on, as long as an
// epoch has at least 16 steps. If even the smallest has fewer, that one alone.
std::vector<int64_t> batch_candidates(const BatchLimits& limits);

// Measures the candidates in their order, until two in a row cannot run or, unless the largest is
// wanted, are no faster than those before; or until `seconds` have passed by the clock `now`. As
// long as none could run, it goes on. Returns those that were tried.
std::vector<BatchTrial> measure_batches(const std::vector<int64_t>& candidates, bool largest,
                                        const std::function<BatchTrial(int64_t)>& measure,
                                        double seconds, const std::function<double()>& now);

// On CPUs: the smallest batch within 10 % of the fastest, since larger ones only make fewer updates
// of an epoch. On GPUs (`largest`): the largest that ran. Empty if none ran.
std::optional<BatchTrial> choose_batch(const std::vector<BatchTrial>& trials, bool largest);

}  // namespace dpt
