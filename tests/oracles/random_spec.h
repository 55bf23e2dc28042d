// A spec for each number: any layers, loss, optimizer and sizes that fit together. Nine consecutive
// numbers have all kinds of data.
#pragma once

#include <cstdint>
#include <string>

namespace dpt {

// YAML of a run of 50 steps, without a mode; the same on every machine. Nets, batches and data are
// small, their sizes seldom multiples of anything. recompute: some entries of the model say
// `checkpoint: true`; the spec of a seed is the same without, but for these words.
std::string random_spec(uint64_t seed, bool recompute = true);

// The settings of `parallel: {pipeline: {...}}` for two stages, without and with a `checkpoint`.
struct RandomPipeline {
  std::string kept, recomputed;
};
RandomPipeline random_pipeline(uint64_t seed);

}  // namespace dpt
