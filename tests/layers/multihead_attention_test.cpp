#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("multihead_attention projects, attends and projects, with torch's names") {
  CHECK(lowered("model: [{multihead_attention: 2, name: attn}]", real({5, 3, 4})) ==
        "attn.linear f32[5, 3, 12] = linear(input, attn.in_proj_weight, attn.in_proj_bias)\n"
        "attn.attention f32[5, 3, 4] = attention(attn.linear)\n"
        "attn.linear f32[5, 3, 4] = linear(attn.attention, attn.out_proj.weight, "
        "attn.out_proj.bias)\n");
  ModelText text("model: [{multihead_attention: {num_heads: 4, causal: true, bias: false}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 3, 8}), .loss = false, .differentiate = false},
                  text.diagnostics);
  CHECK(graph.parameters.size() == 2);
  const auto& settings = std::any_cast<const Attention&>(graph.nodes.at(1).attrs);
  CHECK(settings.heads == 4);
  CHECK(settings.causal);
}

TEST_CASE("multihead_attention as PyTorch") {
  CHECK(torch_layer("model: [{multihead_attention: 2}]", {5, 3, 4}) == "MultiheadAttention(4, 2)");
  CHECK(torch_layer("model: [{multihead_attention: {num_heads: 4, causal: true, bias: false}}]",
                    {5, 3, 8}) == "MultiheadAttention(8, 4, causal=True, bias=False)");
}

TEST_CASE("multihead_attention says what it takes") {
  CHECK(complaint(lowered("model: [{multihead_attention: 3}]", real({5, 3, 4}))) ==
        "error: multihead_attention: the 4 features of [5, 3, 4] cannot be divided evenly into 3 "
        "heads");
  CHECK(complaint(lowered("model: [{multihead_attention: 2}]", real({5, 4}))) ==
        "error: multihead_attention takes real numbers (f32) [N, positions, features], not f32[5, "
        "4]: "
        "put an embedding before it?");
  CHECK(complaint(lowered("model: [{multihead_attention: 2}]", numbers({5, 3, 4}))) ==
        "error: multihead_attention takes real numbers (f32) [N, positions, features], not "
        "i32[5, 3, 4]: put an embedding before it?");
  CHECK(complaint(lowered("model: [{multihead_attention: 0}]", real({5, 3, 4}))) ==
        "error: 'num_heads' must be between 1 and 2^31 - 1");
}

}  // namespace dpt
