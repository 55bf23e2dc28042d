#include "../folder.h"
#include "data/dataset.h"

namespace dpt {
namespace {

const TargetTransformType& input_type() {
  for (const TargetTransformType& t : target_transform_table())
    if (t.name == "input") return t;
  FAIL("no input");
  return target_transform_table()[0];
}

TEST_CASE("target input has the shape of the input, and takes no tokens") {
  const std::any settings = settings_of(input_type(), "");
  const TensorDesc image{DType::f32, {3, 8, 8}};
  CHECK(input_type().infer(settings, image, 10) == image);
  CHECK(error_of(Fault::spec,
                 [&] {
                   input_type().infer(settings, {DType::i32, {5}}, 10);
                 }) ==
        "target transform 'input' is for inputs of numbers, but the data set's are tokens ([5] "
        "i32)");
  CHECK(has(complaint_of(input_type(), "{noise: 1}"), "takes no settings"));
}

TEST_CASE("target input exports to PyTorch") {
  CHECK(input_type().torch(settings_of(input_type(), ""), 10) == "y = x\n");
}

}  // namespace
}  // namespace dpt
