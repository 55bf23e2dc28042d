#include <fmt/format.h>

#include "data/dataset.h"
#include "data/mixing.h"

namespace dpt::transforms {
namespace {

// Yun et al. 2019, like torchvision's v2.CutMix: a rectangle of the image becomes that of another
// training sample; classes are mixed by its area, of which the share 1 - s is drawn from
// Beta(alpha, alpha).
struct Cutmix {
  static constexpr Usage kUsage{"torchvision.transforms.v2.CutMix",
                                "transforms: [to_tensor, {cutmix: {alpha: 0.2, p: 0.5}}]\n"
                                "transforms: [to_tensor, {mixup: 0.2}, {cutmix: 1}]"};

  double alpha = 1, p = 1;
  static KeyTable<Cutmix> keys() {
    return KeyTable<Cutmix>()
        .optional("alpha", &Cutmix::alpha,
                  "both parameters of the beta distribution of a sample's share; near 0, samples "
                  "are hardly mixed",
                  kPositive)
        .optional("p", &Cutmix::p, "probability that a sample is mixed", kProbability);
  }
};

Mixing mixing(const std::any& settings) {
  const auto& c = std::any_cast<const Cutmix&>(settings);
  return {.kind = Mixing::Kind::cutmix, .alpha = c.alpha, .p = c.p};
}

}  // namespace

TransformType cutmix() {
  TransformType t{registry_entry<Cutmix>(
      "cutmix",
      "Pastes a rectangle of another training sample into each image, and mixes the classes.")};
  t.mixing = mixing;
  return t;
}

}  // namespace dpt::transforms
