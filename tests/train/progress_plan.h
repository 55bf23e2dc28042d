// The plan of a run that tests of its progress share.
#pragma once

#include "train/progress.h"

namespace dpt {

inline constexpr ProgressPlan kPlan{.epochs = 10,
                                    .steps_of_epoch = 600,
                                    .steps = 6000,
                                    .samples_of_step = 100,
                                    .evaluate_every = 1,
                                    .test_batches = 100,
                                    .test_samples = 10000};

}  // namespace dpt
