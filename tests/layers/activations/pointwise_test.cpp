#include <doctest/doctest.h>

#include "graph/formulas/activations.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("relu keeps the shape and has no keys") {
  CHECK(lowered("model: [relu]", real({2, 3, 4})) == "0.relu f32[2, 3, 4] = relu(input)\n");
  CHECK(torch_layer("model: [relu]", {2, 3}) == "nn.ReLU()");
  CHECK(complaint(lowered("model: [{relu: 1}]", real({2, 3}))) ==
        "error: layer 'relu' takes no settings");
}

TEST_CASE("relu6 keeps the shape and has no keys") {
  CHECK(lowered("model: [relu6]", real({2, 3, 4})) == "0.relu6 f32[2, 3, 4] = relu6(input)\n");
  CHECK(torch_layer("model: [relu6]", {2, 3}) == "nn.ReLU6()");
  CHECK(complaint(lowered("model: [{relu6: 1}]", real({2, 3}))) ==
        "error: layer 'relu6' takes no settings");
}

TEST_CASE("leaky_relu hands its settings to the operator and to PyTorch") {
  ModelText text("model: [leaky_relu, {leaky_relu: 0.2}]");
  REQUIRE(text.diagnostics.ok());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  CHECK(graph.str() ==
        "0.leaky_relu f32[2, 3] = leaky_relu(input)\n1.leaky_relu f32[2, 3] = "
        "leaky_relu(0.leaky_relu)\n");
  const auto& usual = std::any_cast<const formula::LeakyRelu&>(graph.nodes[0].attrs);
  const auto& given = std::any_cast<const formula::LeakyRelu&>(graph.nodes[1].attrs);
  CHECK(usual.negative_slope == 0.01);
  CHECK(given.negative_slope == 0.2);
  CHECK(torch_layer("model: [leaky_relu]", {2, 3}) == "nn.LeakyReLU()");
  CHECK(torch_layer("model: [{leaky_relu: 0.2}]", {2, 3}) == "nn.LeakyReLU(negative_slope=0.2)");
}

TEST_CASE("leaky_relu refuses a wrong setting") {
  CHECK(complaint(lowered("model: [{leaky_relu: steep}]", real({2, 3}))) ==
        "error: 'negative_slope' must be a number, not 'steep'");
}

TEST_CASE("elu hands its settings to the operator and to PyTorch") {
  ModelText text("model: [elu, {elu: {alpha: 0.5}}]");
  REQUIRE(text.diagnostics.ok());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  CHECK(graph.str() == "0.elu f32[2, 3] = elu(input)\n1.elu f32[2, 3] = elu(0.elu)\n");
  const auto& usual = std::any_cast<const formula::Elu&>(graph.nodes[0].attrs);
  const auto& given = std::any_cast<const formula::Elu&>(graph.nodes[1].attrs);
  CHECK(usual.alpha == 1);
  CHECK(given.alpha == 0.5);
  CHECK(torch_layer("model: [elu]", {2, 3}) == "nn.ELU()");
  CHECK(torch_layer("model: [{elu: {alpha: 0.5}}]", {2, 3}) == "nn.ELU(alpha=0.5)");
}

TEST_CASE("elu refuses a wrong setting") {
  CHECK(complaint(lowered("model: [{elu: [1]}]", real({2, 3}))) ==
        "error: 'alpha' must be a number, not a list");
}

TEST_CASE("selu keeps the shape and has no keys") {
  CHECK(lowered("model: [selu]", real({2, 3, 4})) == "0.selu f32[2, 3, 4] = selu(input)\n");
  CHECK(torch_layer("model: [selu]", {2, 3}) == "nn.SELU()");
  CHECK(complaint(lowered("model: [{selu: 1}]", real({2, 3}))) ==
        "error: layer 'selu' takes no settings");
}

TEST_CASE("silu keeps the shape and has no keys") {
  CHECK(lowered("model: [silu]", real({2, 3, 4})) == "0.silu f32[2, 3, 4] = silu(input)\n");
  CHECK(torch_layer("model: [silu]", {2, 3}) == "nn.SiLU()");
  CHECK(complaint(lowered("model: [{silu: 1}]", real({2, 3}))) ==
        "error: layer 'silu' takes no settings");
}

TEST_CASE("sigmoid keeps the shape and has no keys") {
  CHECK(lowered("model: [sigmoid]", real({2, 3, 4})) ==
        "0.sigmoid f32[2, 3, 4] = sigmoid(input)\n");
  CHECK(torch_layer("model: [sigmoid]", {2, 3}) == "nn.Sigmoid()");
  CHECK(complaint(lowered("model: [{sigmoid: 1}]", real({2, 3}))) ==
        "error: layer 'sigmoid' takes no settings");
}

TEST_CASE("tanh keeps the shape and has no keys") {
  CHECK(lowered("model: [tanh]", real({2, 3, 4})) == "0.tanh f32[2, 3, 4] = tanh(input)\n");
  CHECK(torch_layer("model: [tanh]", {2, 3}) == "nn.Tanh()");
  CHECK(complaint(lowered("model: [{tanh: 1}]", real({2, 3}))) ==
        "error: layer 'tanh' takes no settings");
}

TEST_CASE("softplus hands its settings to the operator and to PyTorch") {
  ModelText text("model: [softplus, {softplus: {beta: 2, threshold: 5}}]");
  REQUIRE(text.diagnostics.ok());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  CHECK(graph.str() ==
        "0.softplus f32[2, 3] = softplus(input)\n1.softplus f32[2, 3] = softplus(0.softplus)\n");
  const auto& usual = std::any_cast<const formula::Softplus&>(graph.nodes[0].attrs);
  const auto& given = std::any_cast<const formula::Softplus&>(graph.nodes[1].attrs);
  CHECK(usual.beta == 1);
  CHECK(usual.threshold == 20);
  CHECK(given.beta == 2);
  CHECK(given.threshold == 5);
  CHECK(torch_layer("model: [softplus]", {2, 3}) == "nn.Softplus()");
  CHECK(torch_layer("model: [{softplus: {beta: 2, threshold: 5}}]", {2, 3}) ==
        "nn.Softplus(beta=2.0, threshold=5.0)");
}

TEST_CASE("softplus refuses a wrong setting") {
  CHECK(complaint(lowered("model: [{softplus: 0}]", real({2, 3}))) ==
        "error: 'beta' must be positive");
}

TEST_CASE("hardswish keeps the shape and has no keys") {
  CHECK(lowered("model: [hardswish]", real({2, 3, 4})) ==
        "0.hardswish f32[2, 3, 4] = hardswish(input)\n");
  CHECK(torch_layer("model: [hardswish]", {2, 3}) == "nn.Hardswish()");
  CHECK(complaint(lowered("model: [{hardswish: 1}]", real({2, 3}))) ==
        "error: layer 'hardswish' takes no settings");
}

TEST_CASE("mish and hardsigmoid keep the shape and have no keys") {
  CHECK(lowered("model: [mish, hardsigmoid]", real({2, 3, 4})) ==
        "0.mish f32[2, 3, 4] = mish(input)\n"
        "1.hardsigmoid f32[2, 3, 4] = hardsigmoid(0.mish)\n");
  CHECK(torch_layer("model: [mish]", {2, 3}) == "nn.Mish()");
  CHECK(torch_layer("model: [hardsigmoid]", {2, 3}) == "nn.Hardsigmoid()");
  CHECK(complaint(lowered("model: [{mish: 1}]", real({2, 3}))) ==
        "error: layer 'mish' takes no settings");
}

TEST_CASE("hardtanh hands its settings to the operator and to PyTorch") {
  ModelText text("model: [hardtanh, {hardtanh: {min_val: 0, max_val: 4}}]");
  REQUIRE(text.diagnostics.ok());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  const auto& usual = std::any_cast<const formula::Hardtanh&>(graph.nodes[0].attrs);
  const auto& given = std::any_cast<const formula::Hardtanh&>(graph.nodes[1].attrs);
  CHECK(usual.min_val == -1);
  CHECK(usual.max_val == 1);
  CHECK(given.min_val == 0);
  CHECK(given.max_val == 4);
  CHECK(torch_layer("model: [hardtanh]", {2, 3}) == "nn.Hardtanh()");
  CHECK(torch_layer("model: [{hardtanh: {min_val: 0, max_val: 4}}]", {2, 3}) ==
        "nn.Hardtanh(min_val=0.0, max_val=4.0)");
}

TEST_CASE("hardtanh refuses bounds in the wrong order") {
  CHECK(complaint(lowered("model: [{hardtanh: {min_val: 1, max_val: 1}}]", real({2, 3}))) ==
        "error: max_val must be larger than min_val, as in torch");
}

TEST_CASE("settings of celu, the shrinks and threshold are PyTorch's") {
  CHECK(torch_layer("model: [celu]", {2, 3}) == "nn.CELU()");
  CHECK(torch_layer("model: [{celu: 0.5}]", {2, 3}) == "nn.CELU(alpha=0.5)");
  CHECK(complaint(lowered("model: [{celu: 0}]", real({2, 3}))) == "error: 'alpha' must not be 0");
  CHECK(torch_layer("model: [{hardshrink: 1}]", {2, 3}) == "nn.Hardshrink(lambd=1.0)");
  CHECK(torch_layer("model: [{softshrink: 1}]", {2, 3}) == "nn.Softshrink(lambd=1.0)");
  CHECK(complaint(lowered("model: [{softshrink: -1}]", real({2, 3}))) ==
        "error: 'lambd' must not be negative");
  CHECK(torch_layer("model: [{threshold: {threshold: 0, value: 0}}]", {2, 3}) ==
        "nn.Threshold(threshold=0.0, value=0.0)");
  CHECK(complaint(lowered("model: [{threshold: 0}]", real({2, 3}))) ==
        "error: layer 'threshold' needs 'value': what replaces it");
}

TEST_CASE("softsign, logsigmoid and tanhshrink have no keys") {
  CHECK(lowered("model: [softsign, logsigmoid, tanhshrink]", real({2, 3})) ==
        "0.softsign f32[2, 3] = softsign(input)\n"
        "1.logsigmoid f32[2, 3] = logsigmoid(0.softsign)\n"
        "2.tanhshrink f32[2, 3] = tanhshrink(1.logsigmoid)\n");
  CHECK(torch_layer("model: [softsign]", {2, 3}) == "nn.Softsign()");
  CHECK(torch_layer("model: [logsigmoid]", {2, 3}) == "nn.LogSigmoid()");
  CHECK(torch_layer("model: [tanhshrink]", {2, 3}) == "nn.Tanhshrink()");
}

}  // namespace dpt
