// The random transforms of a list, and what they draw for a sample: changes of where an image's
// pixels come from, changes of colors, mixtures of two samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"

namespace dpt {

// Draws are functions of AugmentSeed and drawn sample. Threads: any may call the const functions at
// the same time. They do not allocate.
class RandomTransforms {
 public:
  RandomTransforms() = default;  // none
  // sample: as the data set stores it. If `split` is for evaluation, transforms are omitted, except
  // that a crop still changes the size. Throws Error{spec} if a transform does not fit the sample.
  RandomTransforms(std::span<const Choice> transforms, const TensorDesc& sample, Split split);

  // The element-wise transforms that apply before colors change. These may run before crops and
  // flips, because they change each element by itself; the colors that random transforms paint with
  // are converted the same way.
  const std::vector<Choice>& fixed() const { return fixed_; }
  const Shape& shape() const { return shape_; }  // of a sample after all transforms

  // Whether a sample may be another one each time it is drawn.
  bool any() const { return changes_.count > 0 || changes_colors() || mixes(); }

  // Crops, flips and patches of stored images [C, height, width], up to a change of colors, and the
  // colors that they paint with, [changes, C].
  const augment::Changes& changes() const { return changes_; }
  const std::vector<float>& colours() const { return colours_; }
  // Those of changes() that move pixels: crops and flips.
  augment::Changes moves() const;

  // Changes of colors, and the transforms that follow them, of x[shape()] after changes().
  bool changes_colors() const { return jitter_.has_value(); }
  void change_colors(DrawnSample sample, const AugmentSeed& augment_seed, float* x) const;

  // Mixtures with one of `samples` training samples, after all other transforms.
  bool mixes() const { return !mixings_.empty(); }
  MixDraw mix(DrawnSample sample, const AugmentSeed& augment_seed, size_t samples) const;

 private:
  void add_random(std::span<const Choice> transforms, size_t index, size_t jitter,
                  const Shape& image, DType from);

  std::vector<Choice> fixed_;
  Shape shape_;
  augment::Changes changes_;
  std::vector<float> colours_;
  std::optional<ColorJitter> jitter_;  // after changes_
  uint64_t jitter_index_ = 0;          // in the list of transforms
  std::vector<Choice> after_jitter_;   // element-wise transforms that follow it
  augment::Changes painted_;           // random changes that follow it, which paint only
  std::vector<float> painted_colours_;
  std::vector<Mixing> mixings_;
  uint64_t mixing_index_ = 0;  // of the first in the list of transforms
};

}  // namespace dpt
