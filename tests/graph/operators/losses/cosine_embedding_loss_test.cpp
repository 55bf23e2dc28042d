#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("cosine_embedding_loss makes vectors alike, or unlike") {
  // Cosines 0.6 and 0.8.
  const std::vector<Given> in = {
      {f64({2, 2, 2}), {1, 0, 3, 4, 0, 2, 3, 4}}, {f64({2, 1}), {1, -1}}, {f64({1}), {1}}};
  CHECK(close(run_op("cosine_embedding_loss", in, CosineEmbedding{.margin = 0.5}), {0.4 + 0.3},
              1e-12));
  CHECK(close(run_op("cosine_embedding_loss", in, CosineEmbedding{.margin = 0.9}), {0.4}, 1e-12));
  // d cos / d a = b / (|a| |b|) - cos a / (a a)
  CHECK(close(run_op("cosine_embedding_loss_gradient", in, CosineEmbedding{.margin = 0.9}),
              {0, -0.8, -0.128, 0.096, 0, 0, 0, 0}, 1e-12));
}

TEST_CASE("cosine_embedding_loss refuses other shapes") {
  CHECK(refusal("cosine_embedding_loss", {f32({2, 3, 4}), f32({2, 1}), f32({1})}) ==
        "cosine_embedding_loss: output f32[2, 3, 4] must be [N, 2, D]");
  CHECK(refusal("cosine_embedding_loss", {f32({2, 2, 4}), f32({2}), f32({1})}) ==
        "cosine_embedding_loss: targets f32[2] must be f32[2, 1]");
}

}  // namespace dpt
