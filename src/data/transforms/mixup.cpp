#include <fmt/format.h>

#include "data/dataset.h"
#include "data/mixing.h"

namespace dpt::transforms {
namespace {

// Zhang et al. 2017, like torchvision's v2.MixUp: x becomes s x + (1 - s) x2, where s is drawn from
// Beta(alpha, alpha) and x2 is another training sample; so do the classes.
struct Mixup {
  static constexpr Usage kUsage{"torchvision.transforms.v2.MixUp",
                                "transforms: [to_tensor, {mixup: {alpha: 0.2, p: 0.5}}]\n"
                                "transforms: [to_tensor, {mixup: 0.2}, {cutmix: 1}]"};

  double alpha = 1, p = 1;
  static KeyTable<Mixup> keys() {
    return KeyTable<Mixup>()
        .optional("alpha", &Mixup::alpha,
                  "both parameters of the beta distribution of a sample's share; near 0, samples "
                  "are hardly mixed",
                  kPositive)
        .optional("p", &Mixup::p, "probability that a sample is mixed", kProbability);
  }
};

Mixing mixing(const std::any& settings) {
  const auto& c = std::any_cast<const Mixup&>(settings);
  return {.kind = Mixing::Kind::mixup, .alpha = c.alpha, .p = c.p};
}

}  // namespace

TransformType mixup() {
  TransformType t{
      registry_entry<Mixup>("mixup", "Mixes each training sample and its class with another one.")};
  t.mixing = mixing;
  return t;
}

}  // namespace dpt::transforms
