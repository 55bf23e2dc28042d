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

// The parameters of a model, for patterns. The time of a pattern grows with the parameters that it
// matches, or that begin as a glob does before its first wildcard.
class NamedParameters {
 public:
  // graph: of spec.model, with the parameters in its order.
  NamedParameters(const Spec& spec, const Graph& graph);

  // The indices in graph.parameters of those that the pattern matches, in order.
  std::vector<size_t> matching(std::string_view pattern) const;
  // The indices of the parameters that at least one of the patterns matches, in order.
  std::vector<size_t> matching(const Patterns& patterns) const;
  // For each of graph.parameters: whether one of the patterns matches it.
  std::vector<bool> marked(const Patterns& patterns) const;
  // Reports patterns that match nothing, with the names that they may have meant.
  void check(const Patterns& patterns, Diagnostics& d) const;

 private:
  struct Parameter {
    std::string name;
    bool norm = false;  // of a normalization layer
  };
  // Appends the indices of parameters whose names begin with `prefix` and are accepted.
  template <class Accepts>
  void find(std::string_view prefix, std::vector<size_t>& out, Accepts&& accepts) const;
  std::string advice(const std::string& pattern) const;

  std::vector<Parameter> parameters_;
  std::vector<size_t> by_name_;  // indices in the order of names
};

// Reports the patterns of a spec that match nothing.
void check_patterns(const Spec& spec, const NamedParameters& parameters, Diagnostics& d);

}  // namespace dpt
