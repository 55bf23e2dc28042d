#include "layers/losses/common.h"

namespace dpt::losses {

void require_values(std::string_view loss, const GraphBuilder& g, ValueId output, ValueId target) {
  const TensorDesc y = g.desc(output), t = g.desc(target);
  if (t.dtype != DType::f32 && y.shape.rank() > t.shape.rank() && y.shape.back() > 1)
    fail(
        Fault::spec,
        "{} compares values, but the targets are classes {}{}: add `target_transforms: [one_hot]`, "
        "or store them as float32 if they are no classes",
        loss, name_of(t.dtype), t.shape.str());
  if (t.dtype != DType::f32)  // one number a sample: regression, or two classes
    fail(Fault::spec,
         "{} compares real numbers, but the targets are integers {}{}: store them as float32 (in a "
         "CSV file, leave `classes` out)",
         loss, name_of(t.dtype), t.shape.str());
  if (y.shape != t.shape)
    fail(Fault::spec, "{}: the model gives {}, but the targets are {}", loss, y.shape.str(),
         t.shape.str());
}

namespace {

Shape without(const Shape& s, int dim) {
  std::vector<int64_t> extents(s.extents().begin(), s.extents().end());
  extents.erase(extents.begin() + dim);
  return Shape(extents);
}

constexpr std::string_view kStoreIntegers =
    "store class numbers as integers (NPY: int64; CSV: `classes: N`)";

// What would make targets of the shape `t` right, where that is likely.
std::string_view remedy(const Shape& y, const Shape& t, int dim) {
  if (t.rank() == 1 && y.rank() > 2) return ": put a flatten before the first linear?";
  if (dim == 1 && y.rank() > 2 && without(y, y.rank() - 1) == t)
    return ": write class_dim: -1 if the last extent has the scores";
  if (dim > 1 && without(y, 1) == t) return ": leave class_dim out if extent 1 has the scores";
  return "";
}

}  // namespace

void require_classes(std::string_view loss, const GraphBuilder& g, ValueId output, ValueId target,
                     int dim) {
  const TensorDesc y = g.desc(output), t = g.desc(target);
  if (t.dtype != DType::i32)
    fail(Fault::spec, "{} takes classes, but the targets are values {}{}; {}", loss,
         name_of(t.dtype), t.shape.str(), kStoreIntegers);
  if (y.shape.rank() < 2)
    fail(Fault::spec, "{} takes scores of classes [N, C, ...], but the model gives {}", loss,
         y.shape.str());
  if (const Shape expected = without(y.shape, dim); expected != t.shape)
    fail(Fault::spec, "{}: the model gives {}, so targets must be {}, not {}{}", loss,
         y.shape.str(), expected.str(), t.shape.str(), remedy(y.shape, t.shape, dim));
}

void require_probabilities(std::string_view loss, const GraphBuilder& g, ValueId output,
                           ValueId target) {
  const TensorDesc y = g.desc(output), t = g.desc(target);
  if (y.shape.rank() == t.shape.rank() && t.shape.back() > 1)
    return require_values(loss, g, output, target);
  if (y.shape != t.shape)
    fail(Fault::spec,
         "{} takes classes, which are integers, or probabilities f32{}, but the targets are real "
         "numbers {}{}; {}",
         loss, y.shape.str(), name_of(t.dtype), t.shape.str(), kStoreIntegers);
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
