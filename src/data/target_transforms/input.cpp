#include "base/fail.h"
#include "data/dataset.h"

namespace dpt::target_transforms {
namespace {

// The target of a sample is its input after all of `data.transforms`, random ones included: an
// autoencoder.
struct Input {
  static constexpr Usage kUsage{"", "target_transforms: [input]"};
  static KeyTable<Input> keys() { return {}; }
};

TensorDesc infer(const std::any& /*settings*/, const TensorDesc& sample, int64_t /*classes*/) {
  if (sample.dtype != DType::f32)
    fail(Fault::spec,
         "target transform 'input' is for inputs of numbers, but the data set's are tokens ({} {})",
         sample.shape.str(), name_of(sample.dtype));
  return sample;
}

std::string torch(const std::any& /*settings*/, int64_t /*classes*/) { return "y = x\n"; }

}  // namespace

TargetTransformType input() {
  TargetTransformType t{registry_entry<Input>(
      "input", "Takes the input of a sample after its transforms as the target: autoencoders.")};
  t.takes_input = true;
  t.infer = infer;
  t.torch = torch;
  return t;
}

}  // namespace dpt::target_transforms
