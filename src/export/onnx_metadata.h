// What an ONNX model says about its inputs and outputs: entries of metadata_props.
#pragma once

#include <map>
#include <string>

#include "data/sample_form.h"
#include "spec/node.h"

namespace dpt {

// Entries that readers need to make inputs and to read outputs, as far as a run has them:
//   names              classes: `{0: "cat", 1: "dog"}`, a literal of Python, as Ultralytics writes
//   input_columns      a name for each number of an input, such as "age" or "sex=male": JSON
//   target_columns     of tables: JSON
//   data               data.json of the run: also categories, means and standard deviations: JSON
//   transforms, target_transforms   as in the spec: YAML
// spec: the tree of the run's spec.
std::map<std::string, std::string> onnx_metadata(const SampleForm& form, const Node& spec);

}  // namespace dpt
