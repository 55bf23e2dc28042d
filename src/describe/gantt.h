// Pictures of a pipeline: who has which chunk when.
#pragma once

#include <string>

#include "parallel/schedule.h"

namespace dpt {

// A line for each device: a chunk's number where its forward part begins, then '=', its number and
// '#' for the backward part, '.' where the device waits.
std::string gantt_text(const PipelineSchedule& schedule, const Timing& timing);

// The same as SVG.
std::string gantt_svg(const PipelineSchedule& schedule, const Timing& timing);

}  // namespace dpt
