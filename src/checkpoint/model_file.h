// Initial values of weights, drawn like PyTorch's, and model.safetensors with PyTorch's names.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "base/disk.h"
#include "base/generator.h"
#include "optim/gradient_scaler.h"
#include "session/buffers.h"
#include "session/compiled_model.h"
#include "session/devices.h"
#include "session/run_precision.h"
#include "session/run_settings.h"

namespace dpt {

// Draws the initial values of a parameter as PyTorch does. REQUIRES: `out` has the shape's size.
void draw(const Init& init, const Shape& shape, Generator& generator, std::span<float> out);

// Takes row-major initial values of a parameter: those of the indices from `first` on along its
// first dimension.
using PutRows = std::function<void(ValueId, int64_t first, std::span<const float> rows)>;

// Draws the initial values of all parameters of a graph and passes them to `put`, in PyTorch's
// order: first each layer's default initialization, then a second draw for those with `init` in the
// spec. Large parameters come in parts, one behind the other.
void draw_parameters(const Graph& graph, Generator& generator, const PutRows& put);

// Fills weights and optimizer states with their initial values. With weights_of_file, the weights
// come from the file `initial_weights`, if the spec names one. Throws Error{data} if that file does
// not fit the model.
void initialise(const RunSettings& settings, const Devices& devices, const RunPrecision& precision,
                const CompiledModel& model, const Buffers& buffers, Generator& generator,
                bool weights_of_file = true);

// With averages (RunSettings): the average of the weights starts from the weights. Does nothing if
// workers keep their own states, which start so.
void start_average(const RunSettings& settings, const Devices& devices, const Buffers& buffers);

// Throws the Error{data} that initialise() would throw for the file `initial_weights`, reading its
// header only. Does nothing if the spec names no file.
void check_initial_weights(const RunSettings& settings, const CompiledModel& model);

// What the spec's `initial_weights: {partial: true}` takes from its file and what not: "initial
// weights: 120 of 122 tensors from ..."; empty without it. Throws like check_initial_weights().
std::string partial_weights_text(const RunSettings& settings, const CompiledModel& model);

// Throws Error{data} where spec.initial_weights names a file that cannot be read; for a spec
// without a session. By the file's header alone.
void check_weights_file(const Spec& spec);

// Throws Error{data} where a number in that file is not finite, which would end a run at its first
// step. Reads the whole file. REQUIRES: check_initial_weights() has not thrown.
void check_weight_values(const RunSettings& settings, const CompiledModel& model);

// Throws Error{diverged} if a trained weight is not finite, which an update with finite gradients
// may cause. epoch, step: of the last update, for the message.
void check_finite(const CompiledModel& model, const Buffers& buffers, int64_t epoch, int64_t step);

// What stands beside the tensors in a model's file.
std::map<std::string, std::string> model_facts(const RunPrecision& precision,
                                               const GradientScaler::State& scaler);

// Writes all parameters (frozen ones too) and buffers atomically; creates the folder if it is
// missing. more: further facts beside model_facts(). Throws Error{failed}, DiskFull if the disk is
// full.
void save_model(const RunPrecision& precision, const CompiledModel& model, const Buffers& buffers,
                const GradientScaler::State& scaler, const std::string& path, Disk& disk,
                const std::map<std::string, std::string>& more = {});

}  // namespace dpt
