#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {
namespace {

// The dimension over which a layer goes.
int64_t softmax_dim(const std::string& layer, Shape x) {
  ModelText text("model: [" + layer + "]");
  const Graph graph = build_graph(
      text.spec, {.input = real(x), .loss = false, .differentiate = false}, text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  return std::any_cast<const Softmax&>(graph.nodes.at(0).attrs).dim;
}

}  // namespace

TEST_CASE("softmax goes over the features, or over dim") {
  CHECK(softmax_dim("softmax", {2, 3}) == 1);
  CHECK(softmax_dim("softmax", {2, 3, 4, 5}) == 1);  // what torch takes by itself, not the last
  CHECK(softmax_dim("softmax: -1", {2, 3, 4}) == 2);
  CHECK(softmax_dim("softmax: {dim: 1}", {2, 3, 4}) == 1);
  CHECK(torch_layer("model: [softmax]", {2, 3}) == "nn.Softmax(dim=1)");
  CHECK(torch_layer("model: [{softmax: -1}]", {2, 3, 4}) == "nn.Softmax(dim=-1)");
}

TEST_CASE("softmax never goes over the batch") {
  CHECK(complaint(lowered("model: [{softmax: 0}]", real({2, 3}))) ==
        "error: softmax: dim is 0, which is the batch of the input [2, 3]: it would mix samples");
  CHECK(complaint(lowered("model: [softmax]", real({2, 3, 4}))) ==
        "error: softmax of an input of [2, 3, 4] needs 'dim': torch's default would be the batch "
        "dimension");
}

TEST_CASE("log_softmax goes over the features, or over dim") {
  CHECK(softmax_dim("log_softmax", {2, 3}) == 1);
  CHECK(softmax_dim("log_softmax", {2, 3, 4, 5}) == 1);  // what torch takes by itself, not the last
  CHECK(softmax_dim("log_softmax: -1", {2, 3, 4}) == 2);
  CHECK(softmax_dim("log_softmax: {dim: 1}", {2, 3, 4}) == 1);
  CHECK(torch_layer("model: [log_softmax]", {2, 3}) == "nn.LogSoftmax(dim=1)");
  CHECK(torch_layer("model: [{log_softmax: -1}]", {2, 3, 4}) == "nn.LogSoftmax(dim=-1)");
}

TEST_CASE("log_softmax never goes over the batch") {
  CHECK(
      complaint(lowered("model: [{log_softmax: 0}]", real({2, 3}))) ==
      "error: log_softmax: dim is 0, which is the batch of the input [2, 3]: it would mix samples");
  CHECK(complaint(lowered("model: [log_softmax]", real({2, 3, 4}))) ==
        "error: log_softmax of an input of [2, 3, 4] needs 'dim': torch's default would be the "
        "batch dimension");
}

}  // namespace dpt
