// Runs one operator's plain loops on given numbers.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/attrs.h"
#include "graph/interpret.h"

namespace dpt {

struct Given {
  TensorDesc desc;
  std::vector<double> content;
};

// The numbers of result `result`.
inline std::vector<double> run_op(std::string_view name, const std::vector<Given>& inputs,
                                  const std::any& attrs = {}, const StepContext& context = {},
                                  size_t result = 0) {
  std::vector<HostTensor> in;
  for (const Given& n : inputs) in.push_back(tensor(n.desc, n.content));
  std::vector<HostTensor> out = run_reference(op(name), in, attrs, context);
  std::vector<double> numbers;
  for (size_t i = 0; i < out[result].size(); ++i) numbers.push_back(out[result].get(i));
  return numbers;
}

// Equal up to rounding in double; torch's printed values have 16 digits.
inline bool close(const std::vector<double>& a, const std::vector<double>& b,
                  double tolerance = 1e-14) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(b[i])))) return false;
  return true;
}

// The message with which an operator refuses shapes; empty where it does not.
inline std::string refusal(std::string_view name, const std::vector<TensorDesc>& in,
                           const std::any& attrs = {}) {
  try {
    op(name).infer(in, attrs);
  } catch (const Error& e) {
    return e.fault() == Fault::spec ? e.what() : "not a spec error";
  }
  return "";
}

}  // namespace dpt
