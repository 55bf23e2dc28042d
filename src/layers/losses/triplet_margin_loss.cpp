// triplet_margin_loss: max(0, d(a, p) - d(a, n) + margin) for three vectors of each sample, output
// [N, 3, D]: an anchor, a sample like it and one unlike it. Schroff et al., 2015.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

constexpr std::string_view kTripletMarginTorch = R"py(class TripletMargin(nn.TripletMarginLoss):
    """Compares the three vectors of each sample; targets are not used."""

    def forward(self, output, target):
        return super().forward(output[:, 0], output[:, 1], output[:, 2])
)py";

struct TripletMarginLoss : Reduction {
  static constexpr std::string_view kTorchClass = kTripletMarginTorch;
  static constexpr Usage kUsage{
      "torch.nn.TripletMarginLoss",
      "loss: triplet_margin_loss\n"
      "loss: {triplet_margin_loss: {margin: 0.5, p: 1, eps: 1e-6, swap: true, reduction: sum}}"};

  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;

  static KeyTable<TripletMarginLoss> keys() {
    using S = TripletMarginLoss;
    return KeyTable<S>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("margin", &S::margin, "how much farther than the positive the negative must be",
                  kPositive)
        .optional("p", &S::p, "order of the norm of distances",
                  Range{.text = "must be at least 1", .low = 1, .infinite = true})
        .optional("eps", &S::eps, "small number added to differences", kNotNegative)
        .optional(
            "swap", &S::swap,
            "whether the distance of positive and negative replaces that of anchor and negative "
            "where it is smaller");
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId, ValueId divisor) const {
    const Shape y = g.shape(output);
    if (y.rank() != 3 || y[1] != 3)
      fail(Fault::spec,
           "triplet_margin_loss compares three vectors of each sample [N, 3, D], but the model's "
           "output is {}",
           y.str());
    return g.apply("triplet_margin_loss", {output, divisor}, TripletMargin{margin, p, eps, swap});
  }
  Divisor divisor() const { return over(Divisor::samples); }
};

}  // namespace

LossType triplet_margin_loss() {
  return loss_type<TripletMarginLoss>(
      "triplet_margin_loss",
      "Output [N, 3, D], an anchor, a positive and a negative for each sample: makes the anchor "
      "nearer to the positive than to the negative. Targets are not used, but a data set has some. "
      "Linear layers on inputs [N, 3, F] share their weights between the three.");
}

}  // namespace dpt::losses
