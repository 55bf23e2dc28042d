// Session: everything that is decided before the first batch. Nothing is computed yet. `dptrain
// plan` prints it. Its parts are made one after the other, each by one function, and are not
// changed afterwards. Functions take the parts that they read.
#pragma once

#include <memory>

#include "graph/program/plan.h"
#include "session/compiled_model.h"
#include "session/devices.h"
#include "session/evaluation_metrics.h"
#include "session/layout.h"
#include "session/parameter_groups.h"
#include "session/run_length.h"
#include "session/run_precision.h"
#include "session/run_settings.h"
#include "session/session_batches.h"
#include "session/session_data.h"
#include "session/session_query.h"

namespace dpt {

// All names that a spec may use.
Registries registries();

struct Session {                     // each part is made from the spec and parts above it
  RunSettings settings;              // make_settings()
  Devices devices;                   // make_devices()
  RunPrecision precision;            // make_precision()
  SessionData data;                  // load_data()
  SessionBatches batches;            // make_batches()
  CompiledModel model;               // compile_model()
  EvaluationMetrics metrics;         // metrics_of()
  ParameterGroups parameter_groups;  // parameter_groups_of()
  ElementShares shares;              // make_shares()
  Plan plan;                         // make_plan()
  MemoryLayout layout;               // make_memory_layout()
  RunLength length;                  // make_length()
};

// Makes a session. Returns null after errors in the spec (shapes that do not fit, contradicting
// settings), which are reported to `d`. Throws Error{data} if data cannot be read, Error{device} if
// a device is not available.
std::unique_ptr<const Session> make_session(Spec spec, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
