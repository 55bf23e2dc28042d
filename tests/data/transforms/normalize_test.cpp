#include "applied.h"

namespace dpt {

TEST_CASE("normalize takes mean and std of the channel, or the only ones") {
  const std::string yaml = "{mean: [1, 2], std: [4, 8]}";
  CHECK(applied("normalize", yaml, {5, 1}, 0) == std::vector<float>{1, 0});
  CHECK(applied("normalize", yaml, {10, 2}, 1) == std::vector<float>{1, 0});
  CHECK(applied("normalize", "{mean: 1, std: [4, 8]}", {9}, 1) == std::vector<float>{1});
}

TEST_CASE("normalize wants as many numbers as there are channels") {
  const TransformType& t = transform_type("normalize");
  const auto why = [&](const std::string& yaml, const Shape& sample) {
    return t.refuses(settings_of(t, yaml), {DType::u8, sample});
  };
  CHECK(why("{mean: [1, 2, 3], std: 1}", {3, 8, 8}) == "");
  CHECK(why("{mean: 1, std: 1}", {3, 8, 8}) == "");
  CHECK(why("{mean: 1, std: [1, 2]}", {3, 8, 8}) ==
        "'std' has 2 numbers, but samples [3, 8, 8] have 3 channels");
  CHECK(why("{mean: [], std: 1}", {3, 8, 8}) != "");
  CHECK(has(complaint_of(t, "{mean: 1, std: 0}"), "must be positive"));
  CHECK(has(torch_of("normalize", "{mean: [1, 2], std: 0.5}"), "([1, 2], [0.5])"));
}

}  // namespace dpt
