#include "layers/losses/common.h"

namespace dpt::losses {

void require_values(std::string_view loss, const GraphBuilder& g, ValueId output, ValueId target) {
  const TensorDesc y = g.desc(output), t = g.desc(target);
  if (t.dtype != DType::f32)
    fail(Fault::spec,
         "{} compares values, but the targets are classes {}{}: add `target_transforms: [one_hot]`",
         loss, name_of(t.dtype), t.shape.str());
  if (y.shape != t.shape)
    fail(Fault::spec, "{}: the model gives {}, but the targets are {}", loss, y.shape.str(),
         t.shape.str());
}

void require_classes(std::string_view loss, const GraphBuilder& g, ValueId output, ValueId target) {
  const TensorDesc y = g.desc(output), t = g.desc(target);
  if (t.dtype != DType::i32)
    fail(Fault::spec, "{} takes classes, but the targets are values {}{}", loss, name_of(t.dtype),
         t.shape.str());
  if (y.shape.rank() < 2)
    fail(Fault::spec, "{} takes scores of classes [N, C, ...], but the model gives {}", loss,
         y.shape.str());
  std::vector<int64_t> expected(y.shape.extents().begin(), y.shape.extents().end());
  expected.erase(expected.begin() + 1);
  if (const Shape shape{std::span<const int64_t>(expected)}; shape != t.shape)
    fail(Fault::spec, "{}: the model gives {}, so targets must be {}, not {}{}", loss,
         y.shape.str(), shape.str(), t.shape.str(),
         t.shape.rank() == 1 && y.shape.rank() > 2 ? ": put a flatten before the first linear?"
                                                   : "");
}

ValueId weight_constant(std::string_view loss, std::string_view key, GraphBuilder& g,
                        const std::vector<double>& weight, int64_t extent, std::string_view of) {
  if (static_cast<int64_t>(weight.size()) != extent)
    fail(Fault::spec, "{}: '{}' has {} numbers, but there are {} {}", loss, key, weight.size(),
         extent, of);
  return g.constant(key, {extent}, weight);
}

std::string torch_tensor(const std::vector<double>& values) {
  return fmt::format("torch.tensor({}, dtype=torch.float32)", python(values));
}

}  // namespace dpt::losses
