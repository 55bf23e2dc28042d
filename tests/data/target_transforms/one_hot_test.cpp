#include "../folder.h"
#include "data/dataset.h"

namespace dpt {
namespace {

const TargetTransformType& one_hot() {
  for (const TargetTransformType& t : target_transform_table())
    if (t.name == "one_hot") return t;
  FAIL("no one_hot");
  return target_transform_table()[0];
}

TEST_CASE("one_hot is as wide as there are classes, or as it is told") {
  const auto shape = [](const std::string& yaml, const Shape& sample) {
    return one_hot().infer(settings_of(one_hot(), yaml), {DType::i32, sample}, 3).shape;
  };
  CHECK(shape("", {}) == Shape{3});
  CHECK(shape("5", {}) == Shape{5});
  CHECK(shape("", {7}) == Shape{7, 3});
  CHECK(has(error_of(Fault::spec, [&] { shape("2", {}); }),
            "num_classes is 2, but the data set has 3 classes"));
  CHECK(has(error_of(Fault::spec,
                     [] {
                       one_hot().infer(settings_of(one_hot(), ""), {DType::f32, {4}}, 0);
                     }),
            "needs classes, but the targets are [4] f32"));
}

TEST_CASE("one_hot puts a 1 at the class") {
  std::vector<int32_t> classes = {2, 0};
  std::vector<float> out(6, -1);
  one_hot().apply(settings_of(one_hot(), ""),
                  {{DType::i32, {2}}, reinterpret_cast<std::byte*>(classes.data())},
                  {{DType::f32, {2, 3}}, reinterpret_cast<std::byte*>(out.data())});
  CHECK(out == std::vector<float>{0, 0, 1, 1, 0, 0});
  CHECK(one_hot().torch(settings_of(one_hot(), ""), 3) ==
        "y = torch.nn.functional.one_hot(y, 3).float()\n");
}

}  // namespace
}  // namespace dpt
