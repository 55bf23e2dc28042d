// In which order the devices of a pipeline do the forward and the backward parts of their stages.
//   sequential       each chunk forward and backward before the next one: layers that are merely
//                    placed on several devices
//   gpipe            all forward parts, then all backward parts (Huang et al., "GPipe", 2019)
//   1f1b             in turn, once the pipeline is full, so that a stage keeps the activations of
//                    `stages - stage` chunks and not of all (Narayanan et al., "PipeDream", 2019)
//   interleaved_1f1b the same with several stages on each device, which makes the bubble smaller
//                    (Narayanan et al., "Efficient large-scale language model training", 2021)
// Backward parts run in the order of the chunks in all of them, so that gradients are summed in one
// order, that of a batch which one device computes chunk by chunk.
#pragma once

#include <vector>

#include "graph/program/plan.h"

namespace dpt {

enum class ScheduleKind { sequential, gpipe, one_f_one_b, interleaved };

// What is computed again in the backward part in the place of being kept.
enum class Checkpointing { never, except_last, always };

// device: of each stage. REQUIRES: 1f1b and interleaved: stages on devices 0, 1, 2, ..., once or (a
// number of chunks that the devices divide) several times around.
PipelineSchedule pipeline_schedule(ScheduleKind kind, const std::vector<int>& device, int chunks);

// The most chunks, of the first so many, of which the stage has done the forward part and not yet
// the backward part.
int in_flight(const PipelineSchedule& schedule, int stage, int chunks);

// The ops of all devices in one order in which each follows those that it needs, and its device's
// before it: by when they begin if backward parts take twice as long as forward parts.
std::vector<StageOp> in_one_order(const PipelineSchedule& schedule);

// When each op of a schedule runs if it starts as soon as it can.
struct Timing {
  struct Span {
    double begin = 0, end = 0;
  };
  std::vector<std::vector<Span>> spans;  // as in the schedule
  double total = 0;
  double bubble = 0;  // the share of total * devices in which a device waits
};
// forward, backward: seconds (or any unit) of each stage's parts.
Timing simulate(const PipelineSchedule& schedule, const std::vector<double>& forward,
                const std::vector<double>& backward);

}  // namespace dpt
