#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

const char* const kTable = "model: [{embedding: {num_embeddings: 5, embedding_dim: 3}}]";

TEST_CASE("embedding adds an extent to numbers of rows") {
  CHECK(lowered(kTable, numbers({2, 7})) ==
        "0.embedding f32[2, 7, 3] = embedding(input, 0.weight)\n");
  CHECK(torch_layer(kTable, {2, 7}) == "nn.Embedding(5, 3)");
}

TEST_CASE("embedding starts normal, its padding row as zeros") {
  ModelText text("model: [{embedding: {num_embeddings: 5, embedding_dim: 3, padding_idx: -1}}]");
  const Graph graph = build_graph(
      text.spec, {.input = numbers({2}), .loss = false, .differentiate = false}, text.diagnostics);
  const Init& init = graph[graph.parameters.at(0)].origin->init;
  CHECK(init.kind == Init::Kind::normal);
  CHECK(init.a == 0);
  CHECK(init.b == 1);
  CHECK(init.zero_row == 4);
  CHECK(std::any_cast<const Embedding&>(graph.nodes.at(0).attrs).padding_idx == 4);
}

TEST_CASE("embedding refuses what is no number of a row") {
  CHECK(complaint(lowered(kTable, real({2, 7}))) ==
        "error: embedding takes row indices (i32), not f32[2, 7]: use a data set of tokens, "
        "without transforms");
  CHECK(complaint(
            lowered("model: [{embedding: {num_embeddings: 5, embedding_dim: 3, padding_idx: 5}}]",
                    numbers({2}))) == "error: padding_idx is 5, but there are 5 rows");
  CHECK(complaint(lowered("model: [{embedding: 5}]", numbers({2}))) ==
        "error: layer 'embedding' needs 'embedding_dim': size of each row");
}

}  // namespace dpt
