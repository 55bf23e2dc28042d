#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("position_embedding adds a row to each place of a sequence") {
  CHECK(lowered("model: [position_embedding]", real({2, 7, 3})) ==
        "0.position_embedding f32[2, 7, 3] = position_embedding(input, 0.weight)\n");
  CHECK(torch_layer("model: [position_embedding]", {2, 7, 3}) == "PositionEmbedding(7, 3)");
  CHECK(torch_layer("model: [position_embedding: 10]", {2, 7, 3}) == "PositionEmbedding(10, 3)");
}

TEST_CASE("position_embedding is drawn as nn.Embedding, with the rows that were asked for") {
  ModelText text("model: [position_embedding: 10]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 7, 3}), .loss = false, .differentiate = false},
                  text.diagnostics);
  const Value& weight = graph[graph.parameters.at(0)];
  CHECK(weight.desc == real({10, 3}));
  CHECK(weight.origin->init.kind == Init::Kind::normal);
  CHECK(weight.origin->init.a == 0);
  CHECK(weight.origin->init.b == 1);
}

TEST_CASE("position_embedding refuses what is no sequence, or too long") {
  CHECK(complaint(lowered("model: [position_embedding]", numbers({2, 7}))) ==
        "error: position_embedding takes sequences f32[N, T, E], not i32[2, 7]: put an embedding "
        "before it?");
  CHECK(complaint(lowered("model: [position_embedding: 6]", real({2, 7, 3}))) ==
        "error: position_embedding: num_embeddings is 6, but sequences of [2, 7, 3] have 7 "
        "positions");
}

}  // namespace dpt
