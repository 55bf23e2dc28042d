#include "data/transforms/random_flip.h"

namespace dpt::transforms {

TransformType random_vertical_flip() {
  return RandomFlip<true>::type("random_vertical_flip",
                                "Turns some images upside down, as in a mirror, in training only.");
}

}  // namespace dpt::transforms
