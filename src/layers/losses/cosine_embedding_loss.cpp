// cosine_embedding_loss: for two vectors of each sample, output [N, 2, D]: 1 - cos for the target 1
// (alike), max(0, cos - margin) for -1 (unlike).
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

constexpr std::string_view kCosineEmbeddingTorch =
    R"py(class CosineEmbedding(nn.CosineEmbeddingLoss):
    """Compares the two vectors of each sample."""

    def forward(self, output, target):
        return super().forward(output[:, 0], output[:, 1], target.flatten())
)py";

struct CosineEmbeddingLoss : Reduction {
  static constexpr std::string_view kTorchClass = kCosineEmbeddingTorch;
  static constexpr Usage kUsage{"torch.nn.CosineEmbeddingLoss",
                                "loss: cosine_embedding_loss\n"
                                "loss: {cosine_embedding_loss: {margin: 0.5, reduction: sum}}"};

  double margin = 0;

  static KeyTable<CosineEmbeddingLoss> keys() {
    return KeyTable<CosineEmbeddingLoss>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("margin", &CosineEmbeddingLoss::margin,
                  "pairs with the target -1 have zero loss if their cosine is at most this",
                  Range{.text = "must be between -1 and 1", .low = -1, .high = 1});
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    const TensorDesc y = g.desc(output), t = g.desc(target);
    if (y.shape.rank() != 3 || y.shape[1] != 2)
      fail(Fault::spec,
           "cosine_embedding_loss compares two vectors of each sample [N, 2, D], but the model's "
           "output is {}",
           y.shape.str());
    if (t != TensorDesc{DType::f32, {y.shape[0], 1}})
      fail(Fault::spec,
           "cosine_embedding_loss takes one number per sample, 1 for vectors that are alike and -1 "
           "for others, stored as float32; the targets are {}{}",
           name_of(t.dtype), t.shape.str());
    return g.apply("cosine_embedding_loss", {output, target, divisor}, CosineEmbedding{margin});
  }
  Divisor divisor() const { return over(Divisor::samples); }
};

}  // namespace

LossType cosine_embedding_loss() {
  return loss_type<CosineEmbeddingLoss>(
      "cosine_embedding_loss",
      "Output [N, 2, D], targets [N, 1] stored as float32: pulls "
      "the two vectors of a sample together "
      "for the target 1 and pushes them apart for -1, by the cosine "
      "of their angle. Linear layers on "
      "inputs [N, 2, F] share their weights between both.");
}

}  // namespace dpt::losses
