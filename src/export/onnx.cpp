#include "export/onnx.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "base/version.h"
#include "export/onnx_graph.h"
#include "graph/operator.h"

namespace dpt {
namespace {

const std::vector<OnnxOperator>& all_operators() {
  static const std::vector<OnnxOperator> all = [] {
    std::vector<OnnxOperator> out;
    for (const auto& list : {onnx_image_operators(), onnx_norm_operators(), onnx_other_operators()})
      out.insert(out.end(), list.begin(), list.end());
    return out;
  }();
  return all;
}

void translate(OnnxGraph& to, const GraphNode& n) {
  const auto found = std::ranges::find(all_operators(), n.op->name, &OnnxOperator::name);
  if (found == all_operators().end())
    fail(Fault::spec, "layer '{}' has no equivalent in ONNX (operator '{}')", n.layer, n.op->name);
  to.enter(n);
  found->translate(to, n);
}

}  // namespace

std::string onnx_model(const Graph& graph, std::span<const NamedTensor> tensors,
                       const std::string& name, const std::map<std::string, std::string>& metadata,
                       std::span<const float> of_bytes) {
  constexpr int64_t kIrVersion = 8, kOperatorSet = 17;  // they belong together
  constexpr size_t kMost = (size_t{1} << 31) - 1;
  OnnxGraph to(graph, tensors);
  if (!of_bytes.empty()) to.convert_bytes(of_bytes);
  for (const GraphNode& n : graph.nodes) translate(to, n);
  ProtobufWriter set, model;
  set.text(1, "").integer(2, kOperatorSet);  // the default domain
  model.integer(1, kIrVersion).text(2, "dptrain").text(3, version());
  model.message(7, to.finish(name)).message(8, set);
  for (const auto& [key, value] : metadata)
    model.message(14, ProtobufWriter().text(1, key).text(2, value));
  if (model.bytes().size() > kMost)
    fail(Fault::spec, "the model has {} bytes, but an ONNX file holds at most 2 GiB",
         model.bytes().size());
  return model.bytes();
}

std::vector<std::string_view> onnx_operators() {
  std::vector<std::string_view> out;
  for (const OnnxOperator& o : all_operators()) out.push_back(o.name);
  return out;
}

}  // namespace dpt
