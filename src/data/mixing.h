// mixup and cutmix: a training sample is mixed with another one, and its class becomes the
// probabilities of two classes. The formulas are those of torchvision.transforms.v2.MixUp (Zhang et
// al., "mixup: Beyond Empirical Risk Minimization", 2017) and CutMix (Yun et al., 2019). These mix
// a batch with itself and draw once for a batch; here each sample draws its own share and partner
// from all training samples, so that a batch may be divided in any way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/augment.h"

namespace dpt {

struct Mixing {
  enum class Kind { mixup, cutmix } kind = Kind::mixup;
  double alpha = 1;  // the share is drawn from Beta(alpha, alpha)
  double p = 1;      // probability that a sample is mixed
};

// How one sample is mixed. share: of the sample itself, the rest is the partner's.
struct MixDraw {
  bool mixed = false;
  size_t partner = 0;   // one of the training samples, by its index among them
  double share = 1;     // of the target; of each input element for mixup
  bool pasted = false;  // cutmix: `box` of the image is the partner's
  augment::Rect box{0, 0, 0, 0};
};

// A function of seed, epoch and drawn sample. If there are two, each sample draws which of them it
// uses. index: of the first of them in the list of transforms. height and width: of images, for
// cutmix. REQUIRES: 1 or 2 mixings, samples > 0.
MixDraw draw_mix(std::span<const Mixing> mixings, const AugmentSeed& seed, DrawnSample sample,
                 uint64_t index, size_t samples, int64_t height, int64_t width);

// Mixes x[channels, height, width] with the partner's; for mixup, x of `elements` numbers.
void mix_inputs(const MixDraw& draw, std::span<const float> partner, int64_t height, int64_t width,
                std::span<float> x);
// y = share y + (1 - share) partner.
void mix_targets(const MixDraw& draw, std::span<const float> partner, std::span<float> y);

// A number in [0, 1] from Beta(alpha, alpha), by two draws from gamma distributions (Marsaglia and
// Tsang, "A Simple Method for Generating Gamma Variables", 2000).
double draw_beta(augment::Draw& draw, double alpha);

}  // namespace dpt
