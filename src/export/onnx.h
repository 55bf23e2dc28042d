// Exports a trained model as ONNX (github.com/onnx/onnx), operator set 17.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.h"
#include "graph/graph.h"

namespace dpt {

// The bytes of a model with the input `input` [batch, ...] (float, or int64 for tokens), the output
// `output` [batch, ...] (float), and parameters with the names of the state_dict. Only the batch
// may vary. graph: of an evaluation, as layers build it, for any number of samples. tensors: its
// parameters and buffers by name, row-major; others are ignored. name: of the graph. metadata:
// becomes metadata_props. of_bytes: byte_values(); the input is then bytes (uint8), which
// the model converts. Throws Error{spec} if a layer has no equivalent or the model exceeds 2
// GiB, the most that ONNX's format can hold, Error{data} if a tensor is missing or has another
// shape.
std::string onnx_model(const Graph& graph, std::span<const NamedTensor> tensors,
                       const std::string& name,
                       const std::map<std::string, std::string>& metadata = {},
                       std::span<const float> of_bytes = {});

// The operators that onnx_model() knows, for tests.
std::vector<std::string_view> onnx_operators();

}  // namespace dpt
