// Moves weights, running statistics and optimizer states between the flat buffers and files. Files
// have PyTorch's names, shapes and row-major layout; memory has the session's layouts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "formats/safetensors.h"
#include "session/buffers.h"
#include "session/compiled_model.h"
#include "session/run_settings.h"

namespace dpt {

// Returns where state i of all parameters begins; elements are ordered as in the flat buffers.
using StateOf = std::function<float*(int i)>;

// Tensors to write, which refer to the buffers.
std::vector<NamedTensor> model_tensors(const CompiledModel& model, const Buffers& buffers);
// Named like "lin1.weight.exp_avg", for trained parameters only.
std::vector<NamedTensor> state_tensors(const RunSettings& settings, const CompiledModel& model,
                                       const StateOf& state);

// Fills weights and buffers from a file. Throws Error{fault} that lists every mismatch and ends
// with the remedy.
void read_model(const CompiledModel& model, const std::string& path, const Buffers& buffers,
                Fault fault, std::string_view remedy = "");
// The same without a session. location: of each value in a program of the graph; weights: where
// Arena::weights begins.
void read_weights(const Graph& graph, const std::vector<Location>& location, float* weights,
                  const std::string& path, Fault fault);
// Throws the same error for a file that does not fit, reading its header only.
void check_model(const CompiledModel& model, const std::string& path, Fault fault,
                 std::string_view remedy = "");
// Like read_model(), but takes only tensors whose names, types and shapes fit, and leaves the other
// weights as they are. Throws Error{fault} if there are none.
void read_fitting(const CompiledModel& model, const std::string& path, const Buffers& buffers,
                  Fault fault);
// What read_fitting() takes, by the file's header: the names in the file, and in words "120 of 122
// tensors from x.safetensors; not in the file: 'fc.bias'". Throws the same error.
struct FittingTensors {
  std::vector<std::string> names;
  std::string text;
};
FittingTensors fitting_tensors(const CompiledModel& model, const std::string& path, Fault fault);
// Like read_model(), for optimizer states. Averages of weights (`ema`) that the run does not have
// are ignored. Returns false if it has some and the file has not: they are not read then.
bool read_states(const RunSettings& settings, const CompiledModel& model, const std::string& path,
                 const StateOf& state, Fault fault, std::string_view remedy);

// Whether a file of optimizer states has averages of the weights.
bool has_averages(const std::string& path);

}  // namespace dpt
