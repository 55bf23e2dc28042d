// Successive halving (Jamieson and Talwalkar 2016): all settings are trained for a few epochs, the
// best of them for more, and so on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/sweep_run.h"

namespace dpt {

struct Rung {
  size_t settings = 0;  // that are trained
  int64_t epochs = 0;   // in total, so far
};

// The rungs for so many settings and epochs: each keeps one of `eta` settings, and the last one
// trains for all epochs. Their epochs are multiples of `every` (epochs between evaluations).
// Throws Error{spec} if there are fewer than two.
std::vector<Rung> halving_rungs(size_t settings, int64_t epochs, int eta, int64_t every);

// "9 settings for 1 epoch, then 3 for 3, then 1 for 9: 27 epochs instead of 81".
std::string rungs_text(const std::vector<Rung>& rungs);

// The settings that go on after a rung, best first: those whose mean of the metric over their seeds
// was best at the end of the rung. A setting with a run that failed is not among them while others
// are left.
std::vector<size_t> best_settings(const Sweep& sweep, const std::vector<size_t>& settings,
                                  int64_t epochs, size_t count);

// Trains rung after rung by `train(runs, epochs)`, which returns whether to go on, and marks
// settings that are not continued as dropped.
void run_halving(Sweep& sweep, const std::vector<Rung>& rungs,
                 const std::function<bool(const std::vector<size_t>&, int64_t)>& train);

}  // namespace dpt
