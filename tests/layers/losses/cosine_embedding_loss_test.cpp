#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("cosine_embedding_loss compares two vectors of each sample") {
  CHECK(lowered_loss("cosine_embedding_loss", real({4, 2, 5}), real({4, 1})) ==
        "loss.cosine_embedding_loss f64[1] = cosine_embedding_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("cosine_embedding_loss", real({4, 10}), real({4, 1}))) ==
        "error: cosine_embedding_loss compares two vectors of each sample [N, 2, D], but the "
        "model's output is [4, 10]");
  CHECK(complaint(lowered_loss("cosine_embedding_loss", real({4, 2, 5}), numbers({4}))) ==
        "error: cosine_embedding_loss takes one number per sample, 1 for vectors that are alike "
        "and -1 for others, stored as float32; the targets are i32[4]");
  CHECK(divisor_word("cosine_embedding_loss") == Divisor::samples);
  CHECK(torch_loss("{cosine_embedding_loss: {margin: 0.5, reduction: sum}}") ==
        "CosineEmbedding(margin=0.5, reduction=\"sum\")");
  CHECK(complaint(lowered_loss("{cosine_embedding_loss: {margin: 2}}", real({4, 2, 5}),
                               real({4, 1}))) == "error: 'margin' must be between -1 and 1");
}

}  // namespace dpt
