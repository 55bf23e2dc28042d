// SessionBatches: how the samples of each step are split over shards and micro-batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "session/batch_partitioner.h"
#include "session/devices.h"
#include "session/run_settings.h"
#include "session/session_data.h"

namespace dpt {

struct SessionBatches {
  std::optional<BatchPartitioner> train;  // set by make_batches()
  std::optional<BatchPartitioner> test;   // set if there is a set to evaluate
  int64_t global_batch = 1;               // samples per optimizer step
  // Micro-batches that are computed together: the chunks of a pipeline. Without a pipeline, each
  // micro-batch is computed alone.
  int chunks = 1;

  // Whether no non-empty micro-batch follows `micro` among those that are computed together.
  bool last_chunk(const StepRows& rows, size_t micro) const;
};

// Reports to `d` a batch that cannot be split.
SessionBatches make_batches(const Spec& spec, const Devices& devices, const SessionData& sets,
                            Diagnostics& d);

}  // namespace dpt
