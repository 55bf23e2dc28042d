// Weights, running statistics and optimizer states between the flat buffers and torch's files:
// torch's names, shapes and layouts there, the session's layouts here.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "formats/safetensors.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// Tensors to be written: where they lie, or copies where memory has another layout than the file.
struct NamedTensors {
  std::vector<NamedTensor> list;
  std::vector<std::vector<std::byte>> copies;
};

// Where state i of all parameters begins: elements as in the flat buffers.
using StateOf = std::function<float*(int i)>;

NamedTensors model_tensors(const Session& session, const Buffers& buffers);
// "lin1.weight.exp_avg", of parameters that are trained.
NamedTensors state_tensors(const Session& session, const StateOf& state);

// Fills weights and buffers. Throws Error{fault}, with all that does not fit, and the remedy.
void read_model(const Session& session, const std::string& path, const Buffers& buffers,
                Fault fault, std::string_view remedy = "");
// Throws the same for a file that does not fit, by its header alone.
void check_model(const Session& session, const std::string& path, Fault fault);
// As read_model, for states.
void read_states(const Session& session, const std::string& path, const StateOf& state, Fault fault,
                 std::string_view remedy);

}  // namespace dpt
