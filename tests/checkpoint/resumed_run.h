// Runs that go on from checkpoints, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "checkpoint/store.h"
#include "data/folder.h"
#include "train/quick_disk.h"
#include "train/run_spec.h"

namespace dpt {

using Words = std::vector<std::string>;

// Five steps an epoch, the last one smaller; running statistics, dropout.
inline const std::string kFiveSteps = R"(
data:
  dataset: {synthetic_images: {samples: 56, test_samples: 11, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model:
  - flatten
  - linear: 9
  - batch_norm1d
  - relu
  - dropout: 0.3
  - linear: 10
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 3
log: {every: 1}
evaluate: true
)";
// Two steps an epoch.
inline const Words kShort = {"cores=1", "data.dataset.samples=24", "evaluate=false"};

inline std::string checkpoint(const Folder& run, int step) {
  return fmt::format("{}/run/checkpoints/step-{:06}", run.path(), step);
}

using Steps = std::vector<int64_t>;
inline Steps steps_in(const std::string& checkpoints) {
  Steps out;
  for (const auto& c : checkpoints_in(checkpoints)) out.push_back(c.step);
  return out;
}

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A run that writes a checkpoint after each step.
struct Straight {
  Folder folder;
  Quick disk;
  Ran ran;
  explicit Straight(const Words& how, const std::string& spec = kFiveSteps)
      : ran(run_spec_in({.folder = folder.path(), .disk = &disk}, spec,
                        with({"save={every_steps: 1, keep: 100}"}, how))) {
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
  // The rest of it, elsewhere, from that step on.
  Ran rest(int step, const Words& how, const std::string& spec = kFiveSteps) const {
    const Folder other;
    return run_spec_in({other.path(), checkpoint(folder, step)}, spec, with({"save=false"}, how));
  }
};

}  // namespace dpt
