// Checks targets against the model, before a run reaches the first that does not fit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "session/compiled_model.h"
#include "session/run_settings.h"

namespace dpt {

// Looks for samples whose labels do not fit the model's output, by LossType::output_problem: label
// sequences that are too long for ctc_loss. set: "training". rows: the samples that count; empty:
// all. Returns a message that names the first one and counts the others; empty: all fit, or the
// loss fits all.
std::string misfitting_labels(const RunSettings& settings, const CompiledModel& model,
                              const Dataset& dataset, std::string_view set,
                              std::span<const uint32_t> rows = {});

}  // namespace dpt
