// Pictures of a pipeline: which device computes which chunk when.
#pragma once

#include <string>

#include "parallel/schedule.h"

namespace dpt {

// One line for each device. A forward pass is the chunk's number and '=', a backward pass is its
// number and '#', '.' is a bubble.
std::string gantt_text(const PipelineSchedule& schedule, const Timing& timing);

// The same as an SVG picture.
std::string gantt_svg(const PipelineSchedule& schedule, const Timing& timing);

}  // namespace dpt
