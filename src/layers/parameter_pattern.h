// Parameters by pattern, for `freeze`, `no_decay` and `parameter_groups`:
//
//   bias           parameters whose names end in "bias"
//   norm           all parameters of normalization layers
//   layer1         the parameter of this name, or all parameters below the module of this name
//   layer1.*.bias  a glob of names in the state_dict: * is any text with or without dots, ? one
//                  character, [abc], [a-c] and [!a-c] one of a set
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "spec/spec.h"

namespace dpt {

// Whether a glob matches all of `text`. Its time is at most the product of the lengths.
bool glob_matches(std::string_view glob, std::string_view text);

// The parameters of a model, for patterns.
class NamedParameters {
 public:
  // graph: of spec.model, with the parameters in its order.
  NamedParameters(const Spec& spec, const Graph& graph);

  // For each of graph.parameters: whether the pattern matches it.
  std::vector<bool> matching(std::string_view pattern) const;
  // For each of graph.parameters: whether one of the patterns matches it.
  std::vector<bool> matching(const Patterns& patterns) const;
  // Reports patterns that match nothing, with the names that they may have meant.
  void check(const Patterns& patterns, Diagnostics& d) const;

 private:
  struct Parameter {
    std::string name;
    bool norm = false;  // of a normalization layer
  };
  bool matches(std::string_view pattern, const Parameter& parameter) const;
  std::string advice(const std::string& pattern) const;

  std::vector<Parameter> parameters_;
};

// Reports the patterns of a spec that match nothing.
void check_patterns(const Spec& spec, const NamedParameters& parameters, Diagnostics& d);

}  // namespace dpt
