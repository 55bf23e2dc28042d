#include <algorithm>

#include "base/count.h"
#include "base/fail.h"
#include "data/dataset.h"

namespace dpt::target_transforms {
namespace {

// Class c -> f32 [num_classes], 1 at index c and 0 elsewhere: torch's F.one_hot(y).float().
struct OneHot {
  static constexpr Usage kUsage{"torch.nn.functional.one_hot",
                                "target_transforms: [one_hot]\n"
                                "target_transforms: [{one_hot: {num_classes: 10}}]"};

  int64_t num_classes = 0;
  static KeyTable<OneHot> keys() {
    return KeyTable<OneHot>().optional("num_classes", &OneHot::num_classes,
                                       "length of the row; 0: the number of classes", kSizeOrZero);
  }
};

int64_t width(const std::any& settings, int64_t classes) {
  const int64_t given = std::any_cast<const OneHot&>(settings).num_classes;
  return given > 0 ? given : classes;
}

TensorDesc infer(const std::any& settings, const TensorDesc& sample, int64_t classes) {
  if (sample.dtype != DType::i32 || classes == 0)
    fail(Fault::spec, "target transform 'one_hot' needs classes, but the targets are {} {}",
         sample.shape.str(), name_of(sample.dtype));
  if (width(settings, classes) < classes)
    fail(Fault::spec, "target transform 'one_hot': num_classes is {}, but the data set has {}",
         width(settings, classes), counted(classes, "class", "classes"));
  std::vector<int64_t> dims(sample.shape.extents().begin(), sample.shape.extents().end());
  dims.push_back(width(settings, classes));
  return {DType::f32, Shape(dims)};
}

void apply(const std::any& /*settings*/, const TensorView& in, const TensorView& out) {
  const std::span<const int32_t> classes = in.as<const int32_t>();
  const std::span<float> values = out.as<float>();
  const auto width = static_cast<size_t>(out.desc.shape.back());
  std::ranges::fill(values, 0.F);
  for (size_t i = 0; i < classes.size(); ++i)
    values[i * width + static_cast<size_t>(classes[i])] = 1;
}

std::string torch(const std::any& settings, int64_t classes) {
  return fmt::format("y = torch.nn.functional.one_hot(y, {}).float()\n", width(settings, classes));
}

}  // namespace

TargetTransformType one_hot() {
  TargetTransformType t{registry_entry<OneHot>(
      "one_hot", "Replaces a class with a row of zeros that has a 1 at the class's index.")};
  t.infer = infer;
  t.apply = apply;
  t.torch = torch;
  return t;
}

}  // namespace dpt::target_transforms
