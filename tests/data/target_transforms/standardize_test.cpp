#include "../folder.h"
#include "data/dataset.h"

namespace dpt {
namespace {

const TargetTransformType& type() {
  for (const TargetTransformType& t : target_transform_table())
    if (t.name == "standardize") return t;
  FAIL("no standardize");
  return target_transform_table()[0];
}

std::vector<float> standardized(const std::string& settings, std::vector<float> values,
                                const Shape& shape) {
  std::vector<float> out(values.size(), -1);
  type().apply(settings_of(type(), settings),
               {{DType::f32, shape}, reinterpret_cast<std::byte*>(values.data())},
               {{DType::f32, shape}, reinterpret_cast<std::byte*>(out.data())});
  return out;
}

TEST_CASE("target standardize takes each column's mean and standard deviation") {
  CHECK(standardized("{mean: [1, 10], std: [2, 5]}", {1, 10, 5, 0}, {2, 2}) ==
        std::vector<float>{0, 0, 2, -2});
  CHECK(standardized("{mean: 1, std: 2}", {1, 3, 5, 7}, {2, 2}) == std::vector<float>{0, 1, 2, 3});
  CHECK(standardized("{mean: [0, 4], std: 4}", {4, 8, 4, 8, 12, 0, 8, 4}, {2, 2, 2}) ==
        std::vector<float>{1, 2, 0, 1, 3, 0, 1, 0});
}

TEST_CASE("target standardize tells the units of each element") {
  CHECK(type().units(settings_of(type(), "{mean: 0, std: [2, 5]}"), {DType::f32, {2, 2}}) ==
        std::vector<double>{2, 2, 5, 5});
  CHECK(type().units(settings_of(type(), "{mean: 0, std: 3}"), {DType::f32, {2}}) ==
        std::vector<double>{3, 3});
}

TEST_CASE("target standardize refuses classes and wrong counts") {
  const auto why = [](const std::string& settings, const TensorDesc& target) {
    return error_of(Fault::spec, [&] { type().infer(settings_of(type(), settings), target, 3); });
  };
  CHECK(has(why("{mean: 0, std: 1}", {DType::i32, {}}), "needs real numbers"));
  CHECK(has(why("{mean: [0, 1], std: 1}", {DType::f32, {3}}),
            "'mean' has 2 numbers, but a target has 3 columns"));
  CHECK(has(why("{mean: 0, std: [1, 1]}", {DType::f32, {1}}),
            "'std' has 2 numbers, but a target has 1 column"));
  CHECK(has(complaint_of(type(), "{mean: 0, std: 0}"), "must be positive"));
}

TEST_CASE("target standardize exports to PyTorch") {
  CHECK(type().torch(settings_of(type(), "{mean: 3, std: [1, 2]}"), 0) ==
        "mean, std = (torch.tensor(v, dtype=torch.float64).view(-1, *[1] * (y.dim() - 2))\n"
        "             for v in ([3], [1, 2]))\n"
        "y = ((y - mean) / std).float()\n");
}

}  // namespace
}  // namespace dpt
