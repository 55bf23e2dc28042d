// The order in which the devices of a pipeline run the forward and backward parts of their stages.
//   sequential       each chunk forward and backward before the next: layers that are merely placed
//                    on several devices
//   gpipe            all forward parts, then all backward parts (Huang et al., "GPipe", 2019)
//   1f1b             alternating, once the pipeline is full. A stage keeps activations of at most
//                    `stages - stage` chunks (Narayanan et al., "PipeDream", 2019)
//   interleaved_1f1b 1f1b with several stages per device, which makes the bubble smaller (Narayanan
//                    et al., "Efficient Large-Scale Language Model Training on GPU Clusters", 2021)
// In all of them, backward parts run in the order of chunks. So gradients are summed in one order,
// that of a single device which computes a batch chunk by chunk.
#pragma once

#include <vector>

#include "graph/program/plan.h"

namespace dpt {

enum class ScheduleKind { sequential, gpipe, one_f_one_b, interleaved };

// Which chunks' activations are recomputed in the backward part.
enum class Checkpointing { never, except_last, always };

// device: the device of each stage. REQUIRES, for 1f1b and interleaved: stages are on devices 0, 1,
// 2, ..., once around; or several times around, if `chunks` is a multiple of the number of devices.
PipelineSchedule pipeline_schedule(ScheduleKind kind, const std::vector<int>& device, int chunks);

// The largest number of chunks, among the first `chunks`, whose forward part the stage has done but
// not yet their backward part.
int in_flight(const PipelineSchedule& schedule, int stage, int chunks);

// All operations of a schedule in one sequence that respects their dependencies and each device's
// order. They are sorted by start time, assuming that backward parts take twice as long as forward
// parts.
std::vector<StageOp> topological_order(const PipelineSchedule& schedule);

// When each operation of a schedule runs if it starts as early as possible.
struct Timing {
  struct Span {
    double begin = 0, end = 0;
  };
  std::vector<std::vector<Span>> spans;  // [device][operation]
  double total = 0;
  double bubble = 0;  // the fraction of total * devices in which devices wait
};
// forward, backward: duration of each stage's parts, in any unit.
Timing simulate(const PipelineSchedule& schedule, const std::vector<double>& forward,
                const std::vector<double>& backward);

}  // namespace dpt
