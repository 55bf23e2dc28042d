// Formulas and order of draws are compared with torch's in tests/oracles/seeds_test.cpp.
#include "layers/initialisation.h"

#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {
namespace {

// What becomes of the first layer's weight, for an input of [2, 6].
std::optional<Init> init_of(const std::string& model) {
  ModelText text(model);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 6}), .loss = false, .differentiate = false}, text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  return graph[graph.parameters.at(0)].origin->reinit;
}

std::string torch(const std::string& init) {
  ModelText text("model: [{linear: 3, init: " + init + "}]");
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  const Choice& chosen = *text.spec.model.at(0).init_of("weight");
  return static_cast<const InitialisationType*>(chosen.what)->torch(chosen.settings, "w");
}

std::string complaint_about(const std::string& entry, TensorDesc x = real({2, 6})) {
  return complaint(lowered("model: [" + entry + "]", x));
}

}  // namespace

TEST_CASE("a layer's own parameters start anew, all of a repeat, and no others") {
  CHECK_FALSE(init_of("model: [{linear: 3}]"));
  CHECK_FALSE(init_of("model: [{linear: 3, init: {bias: ones}}]"));
  CHECK(init_of("model: [{linear: 3, init: ones}]")->a == 1);
  CHECK(init_of("model: [{linear: 3, init: {weight: ones}, repeat: 2}]")->a == 1);
  CHECK_FALSE(init_of("model: [{linear: 3}, {linear: 3, init: ones}]"));
  const Init cut = *init_of("model: [{linear: 3, init: {trunc_normal: {std: 0.5, b: 3}}}]");
  CHECK(cut.kind == Init::Kind::truncated);
  CHECK(cut.b == 0.5);
  CHECK(cut.low == -2);
  CHECK(cut.high == 3);
}

TEST_CASE("keys of `init` name the parameters of attention") {
  ModelText text(
      "model: [{multihead_attention: {num_heads: 2}, init: {weight: ones, out_proj.weight: zeros, "
      "bias: {constant: 2}}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 3, 6}), .loss = false, .differentiate = false},
                  text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  std::vector<double> starts;
  for (const ValueId v : graph.parameters) starts.push_back(graph[v].origin->reinit->a);
  CHECK(starts == std::vector<double>{1, 2, 0, 2});
  CHECK(complaint_about("{linear: 3, init: {out_proj.weight: ones}}") ==
        "error: this 'linear' has no out_proj.weight for 'ones' to initialize");
}

TEST_CASE("as statements of PyTorch") {
  CHECK(torch("uniform") == "nn.init.uniform_(w)");
  CHECK(torch("{uniform: {a: -1, b: 2}}") == "nn.init.uniform_(w, a=-1.0, b=2.0)");
  CHECK(torch("{normal: 0.02}") == "nn.init.normal_(w, std=0.02)");
  CHECK(torch("{trunc_normal: {std: 0.02, mean: 1, b: 3}}") ==
        "nn.init.trunc_normal_(w, std=0.02, mean=1.0, b=3.0)");
  CHECK(torch("{constant: 0.5}") == "nn.init.constant_(w, val=0.5)");
  CHECK(torch("zeros") == "nn.init.zeros_(w)");
  CHECK(torch("ones") == "nn.init.ones_(w)");
  CHECK(torch("{xavier_uniform: 2}") == "nn.init.xavier_uniform_(w, gain=2.0)");
  CHECK(torch("xavier_normal") == "nn.init.xavier_normal_(w)");
  CHECK(torch("{kaiming_uniform: {a: 0.1}}") == "nn.init.kaiming_uniform_(w, a=0.1)");
  CHECK(torch("{kaiming_normal: {mode: fan_out, nonlinearity: relu}}") ==
        "nn.init.kaiming_normal_(w, mode=\"fan_out\", nonlinearity=\"relu\")");
}

TEST_CASE("what can't be") {
  CHECK(complaint_about("{relu: , init: zeros}") ==
        "error: this 'relu' has no weight for 'zeros' to initialize");
  CHECK(complaint_about("{linear: {out_features: 3, bias: false}, init: {bias: zeros}}") ==
        "error: this 'linear' has no bias for 'zeros' to initialize");
  CHECK(complaint_about("{linear: 3, init: {bias: xavier_normal}}") ==
        "error: xavier_normal needs a weight of two or more dimensions, but this parameter is [3]; "
        "use another initialization, such as uniform or normal");
  CHECK(complaint_about("{residual: [{linear: 6}], init: zeros}") ==
        "error: 'init' applies to a single layer; set it on the layers inside");
  CHECK(complaint_about("{linear: 3, init: {uniform: {a: 2}}}") ==
        "error: a is 2, above b, which is 1");
  CHECK(complaint_about("{linear: 3, init: {trunc_normal: {mean: 5}}}") ==
        "error: [a, b] holds 0.1 % of this normal distribution, and must hold more than 30 %; "
        "change a and b, or use uniform");
  CHECK(complaint_about("{linear: 3, init: {weight: zeros, gain: 3}}") ==
        "error: unknown key 'gain' in 'init'; known: weight, bias, in_proj_weight, in_proj_bias, "
        "out_proj.weight, out_proj.bias");
  CHECK(complaint_about("{linear: 3, init: orthogonal}") ==
        "error: unknown initialization 'orthogonal'; known: uniform, normal, trunc_normal, "
        "constant, zeros, ones, xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal");
}

}  // namespace dpt
