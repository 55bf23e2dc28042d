#include "mixed.h"

namespace dpt {
namespace {

TEST_CASE("cutmix: any division into batches has the same samples, whose targets add up to 1") {
  check_mixed("cutmix", "{alpha: 1}");
}

TEST_CASE("cutmix: what is wrong") {
  const TransformType& t = transform_type("cutmix");
  CHECK(has(complaint_of(t, "{alpha: 0}"), "'alpha' must be positive"));
  CHECK(has(complaint_of(t, "{p: 2}"), "'p' must be between 0 and 1"));
  Dataset values = counting_images(2, {1, 2, 2});
  NewTable targets({DType::f32, {2, 1}});
  std::ranges::fill(targets.as<float>(), 0.0F);
  values.targets = std::move(targets).done();
  values.classes = 0;
  const std::vector<Choice> list = {transform_of("cutmix", "{}")};
  CHECK(has(error_of(Fault::spec, [&] { BatchLoader(values, list, {}); }),
            "need one class per sample, but the targets are [1] f32"));
}

}  // namespace
}  // namespace dpt
