#include "layers/losses/common.h"

#include <algorithm>

#include "base/count.h"

namespace dpt::losses {

void require_values(std::string_view loss, const GraphBuilder& g, ValueId output, ValueId target) {
  const TensorDesc y = g.desc(output), t = g.desc(target);
  if (t.dtype != DType::f32 && y.shape.rank() > t.shape.rank() && y.shape.back() > 1)
    fail(Fault::spec,
         "{} takes real numbers, but the targets are class numbers {}{}: add `target_transforms: "
         "[one_hot]`, or store them as float32 if they are not classes",
         loss, name_of(t.dtype), t.shape.str());
  if (t.dtype != DType::f32)  // one number per sample: regression, or two classes
    fail(Fault::spec,
         "{} takes real numbers, but the targets are integers {}{}: store them as float32 (csv: "
         "leave `classes` and `class_names` out)",
         loss, name_of(t.dtype), t.shape.str());
  if (y.shape != t.shape)
    fail(Fault::spec, "{}: the model's output is {}, but the targets are {}", loss, y.shape.str(),
         t.shape.str());
}

namespace {

Shape without(const Shape& s, int dim) {
  std::vector<int64_t> extents(s.extents().begin(), s.extents().end());
  extents.erase(extents.begin() + dim);
  return Shape(extents);
}

// How to get class targets: with a key of `csv`, or by the dtype in the files of other data sets.
std::string store_integers(int64_t classes) {
  return fmt::format(
      "if they are class numbers, set `classes: {}` in the dataset `csv`, or store them as "
      "integers (npy: int64)",
      classes);
}

// A likely fix for targets of shape t; may be empty.
std::string_view remedy(const Shape& y, const Shape& t, int dim) {
  if (t.rank() == 2 && t[1] == 1 && y.rank() == 2) return "; save them as y.ravel()";
  if (t == y)
    return dim == 1 ? "; if they are one-hot, save y.argmax(1)"
                    : "; if they are one-hot, save y.argmax(-1)";
  if (t.rank() == 1 && y.rank() > 2) return "; is a flatten missing before the first linear?";
  if (dim == 1 && y.rank() > 2 && without(y, y.rank() - 1) == t)
    return "; write class_dim: -1 if the last dimension has the scores";
  if (dim > 1 && without(y, 1) == t) return "; leave class_dim out if dimension 1 has the scores";
  return "";
}

}  // namespace

void require_classes(std::string_view loss, const GraphBuilder& g, ValueId output, ValueId target,
                     int dim) {
  const TensorDesc y = g.desc(output), t = g.desc(target);
  if (t.dtype != DType::i32)
    fail(Fault::spec, "{} takes class numbers, but the targets are real numbers {}{}; {}", loss,
         name_of(t.dtype), t.shape.str(), store_integers(y.shape.rank() > dim ? y.shape[dim] : 2));
  if (y.shape.rank() < 2)
    fail(Fault::spec, "{} takes class scores [N, C, ...], but the model's output is {}", loss,
         y.shape.str());
  if (const Shape expected = without(y.shape, dim); expected != t.shape)
    fail(Fault::spec, "{}: the model's output is {}, so the targets must be {}, not {}{}", loss,
         y.shape.str(), expected.str(), t.shape.str(), remedy(y.shape, t.shape, dim));
}

void require_probabilities(std::string_view loss, const GraphBuilder& g, ValueId output,
                           ValueId target) {
  const TensorDesc y = g.desc(output), t = g.desc(target);
  if (y.shape.rank() == t.shape.rank() && t.shape.back() > 1)
    return require_values(loss, g, output, target);
  if (y.shape != t.shape)
    fail(Fault::spec,
         "{} takes class numbers (integers) or probabilities f32{}, but the targets are real "
         "numbers {}{}; {}",
         loss, y.shape.str(), name_of(t.dtype), t.shape.str(),
         store_integers(y.shape.rank() > 1 ? y.shape[1] : 2));
}

ValueId weight_constant(std::string_view loss, std::string_view key, GraphBuilder& g,
                        const std::vector<double>& weight, int64_t extent, std::string_view of) {
  if (static_cast<int64_t>(weight.size()) != extent)
    fail(Fault::spec, "{}: '{}' has {}, but there are {} {}", loss, key,
         counted(weight.size(), "number"), extent, of);
  return g.constant(key, {extent}, weight);
}

std::string torch_call(std::string_view callee, std::vector<PythonArgument> keys) {
  for (PythonArgument& a : keys)  // without the dtype, integers would make int64
    if (a.value.starts_with('['))
      a.value = fmt::format("torch.tensor({}, dtype=torch.float32)", a.value);
  std::stable_partition(keys.begin(), keys.end(),
                        [](const PythonArgument& a) { return a.name != "reduction"; });
  return PythonCall(callee).keys(keys).str();
}

ValueId ClassTargets::target_weight(GraphBuilder& g, ValueId target) const {
  std::vector<ValueId> in = {target};
  if (!weight.empty())
    in.push_back(g.constant("weight", {static_cast<int64_t>(weight.size())}, weight));
  return g.apply("target_weight", in, NllLoss{ignore_index});
}

void ClassTargets::add_weight(std::string_view loss, GraphBuilder& g, const Shape& output,
                              std::vector<ValueId>& in) const {
  if (!weight.empty())
    in.push_back(weight_constant(loss, "weight", g, weight, output[dim(output)], "classes"));
}

}  // namespace dpt::losses
