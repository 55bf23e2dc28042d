// The graph of a session, compiled for every size of a group of shards that occurs.
#pragma once

#include "parallel/schedule.h"
#include "session/session.h"

namespace dpt {

// Sets all of the session that follows from its model: placement, graph, slots, layout, divisor,
// groups and programs. Complaints about the spec go to `d`. REQUIRES: batches are cut.
void make_programs(Session& s, Diagnostics& d);

// Of a model on several devices: who does what when; empty for one.
PipelineSchedule schedule_of(const Session& s);

}  // namespace dpt
