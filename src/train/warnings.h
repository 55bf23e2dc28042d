// Warnings about specs that train, but hardly as their authors meant: a softmax before
// cross_entropy, a batch larger than the data. A spec that is right gets none.
//
// To add one: write a function beside the others in warnings.cpp and call it from warnings_of().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session/session.h"

namespace dpt {

// `where` points into the spec's files.
struct Warning {
  Span where;
  std::string message;  // what happens and what to do
};

// What the spec alone shows. REQUIRES: `spec` was read without complaints.
std::vector<Warning> warnings_of(const Spec& spec);

// With what the data, the length of the run and the machine show. `cores`: how many the run may
// use; empty: not known.
std::vector<Warning> warnings_of(const Session& session, std::optional<int> cores);

// By place: "my.yaml:9:5: warning: ...", the line, a caret; empty if there are none.
std::string render(std::vector<Warning> warnings);

}  // namespace dpt
