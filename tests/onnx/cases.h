// ONNX node test cases as tests/fixtures/onnx_nodes.py writes them: what they are in
// onnx_nodes.json, the elements of their tensors, named CASE/TENSOR, in onnx_nodes.safetensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "layers/golden.h"

namespace dpt::onnx {

struct Tensor {
  std::string name;  // empty: an optional one that is left out
  std::string type;  // numpy's word, or "sequence"
  std::vector<int64_t> extents;
  std::vector<double> data;
};

struct Case {
  std::string name, op;
  Node attributes;
  std::vector<Tensor> inputs, outputs;

  double number(std::string_view attribute, double otherwise) const;
  std::string word(std::string_view attribute, const std::string& otherwise) const;
  bool has_input(size_t i) const { return i < inputs.size() && !inputs[i].name.empty(); }
};

struct CaseFile {
  golden::Document document;  // places in attributes point into it
  std::vector<Case> cases;
};

CaseFile read_cases(const std::string& folder);

}  // namespace dpt::onnx
