#include "data/transforms/random_flip.h"

namespace dpt::transforms {

TransformType random_horizontal_flip() {
  return RandomFlip<false>::type("random_horizontal_flip",
                                 "Mirrors some images, in training only.");
}

}  // namespace dpt::transforms
