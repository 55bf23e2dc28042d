#include "data/dataset.h"

namespace dpt::transforms {
namespace {

// random_horizontal_flip: as torchvision's.
struct Flip {
  double p = 0.5;
  static KeyTable<Flip> keys() {
    return KeyTable<Flip>().optional("p", &Flip::p, "how probable it is", kProbability);
  }
};

augment::Change change(const std::any& settings) {
  return augment::Flip{std::any_cast<const Flip&>(settings).p};
}

}  // namespace

TransformType random_horizontal_flip() {
  TransformType t{nameable<Flip>("random_horizontal_flip",
                                 "While training left and right change places in some images.")};
  t.random.change = change;
  return t;
}

}  // namespace dpt::transforms
