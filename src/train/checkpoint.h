// Weights in and out: torch's initial values, and model.safetensors with torch's names.
#pragma once

#include <span>
#include <string>

#include "base/generator.h"
#include "train/buffers.h"
#include "train/session.h"
#include "train/trainer.h"

namespace dpt {

// The first values of one parameter: torch's initialisation. REQUIRES: `out` has its size.
void draw_initial(const Value& parameter, Generator& generator, std::span<float> out);

// Fills weights and optimizer states with their first values: torch's initialisation, drawn from
// `generator` in the order of the parameters, or spec.initial_weights. Throws Error{data} where
// that file does not fit.
void initialise(const Session& session, const Buffers& buffers, Generator& generator);

// Writes all parameters, frozen ones too, atomically. Throws Error{failed}.
void save_model(const Session& session, const Buffers& buffers, const Outcome& outcome,
                const std::string& path);

}  // namespace dpt
