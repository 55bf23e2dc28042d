// Weights in and out: torch's initial values, and model.safetensors with torch's names.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "base/disk.h"
#include "base/generator.h"
#include "optim/gradient_scaler.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// The first values of a parameter of this shape, as torch draws them. REQUIRES: `out` has its size.
void draw(const Init& init, const Shape& shape, Generator& generator, std::span<float> out);

// Gives the first values of all parameters of a graph to `put`, in the order in which they are
// drawn: those of torch's layers, then again those that `init` in the spec asks for.
void draw_parameters(const Graph& graph, Generator& generator,
                     const std::function<void(ValueId, std::span<const float>)>& put);

// Fills weights and optimizer states with their first values: draw_parameters, or
// spec.initial_weights, where these are wanted. Throws Error{data} where that file does not fit.
void initialise(const Session& session, const Buffers& buffers, Generator& generator,
                bool weights_of_file = true);

// Throws the Error{data} that initialise() would throw for spec.initial_weights, by the file's
// header alone; nothing where the spec names none.
void check_initial_weights(const Session& session);

// What stands beside the tensors in a model's file.
std::map<std::string, std::string> model_facts(const Session& session,
                                               const GradientScaler::State& scaler);

// Writes all parameters, frozen ones too, atomically; makes the folder where it is missing. Throws
// Error{failed}, NoRoom for a full disk.
void save_model(const Session& session, const Buffers& buffers, const GradientScaler::State& scaler,
                const std::string& path, Disk& disk);

}  // namespace dpt
