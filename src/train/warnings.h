// Warnings about specs that train, but probably not as intended: a softmax before cross_entropy, a
// batch larger than the data. A correct spec gets none.
//
// To add a warning, write a function beside the others in warnings.cpp and call it from
// warnings_of().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session/session.h"

namespace dpt {

// `where` points into the spec's files, which must outlive the warning.
struct Warning {
  Span where;
  std::string message;  // what happens, and what to do
};

// Warnings from the spec alone. REQUIRES: `spec` was read without errors.
std::vector<Warning> warnings_of(const Spec& spec);

// With what the data, the length of the run and the machine show. `cores`: how many the run may
// use; empty: not known. launched: a launcher was asked for this number of ranks.
std::vector<Warning> warnings_of(const Session& session, std::optional<int> cores,
                                 bool launched = false);

// Renders warnings by location: "my.yaml:9:5: warning: ...", the line, and a caret; empty if there
// are none.
std::string render(std::vector<Warning> warnings);

}  // namespace dpt
