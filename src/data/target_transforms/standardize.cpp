#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "data/dataset.h"

namespace dpt::target_transforms {
namespace {

// (y - mean[i]) / std[i], computed in double and rounded last, where i is the index in the first
// dimension of a target: a table's column. A net learns targets near 0 faster than prices in the
// thousands; its outputs and its loss are in units of `std` then.
struct Standardize {
  static constexpr Usage kUsage{"",
                                "target_transforms: [{standardize: {mean: 180000, std: 79000}}]"};

  std::vector<double> mean, std;
  static KeyTable<Standardize> keys() {
    return KeyTable<Standardize>()
        .required("mean", &Standardize::mean, "number to subtract, or one per target column")
        .required("std", &Standardize::std, "number to divide by, or one per target column",
                  kPositive);
  }
};

double of_column(const std::vector<double>& values, size_t column) {
  return values[values.size() == 1 ? 0 : column];
}

size_t columns_of(const TensorDesc& sample) {
  return sample.shape.rank() == 0 ? 1 : static_cast<size_t>(sample.shape[0]);
}

TensorDesc infer(const std::any& settings, const TensorDesc& sample, int64_t /*classes*/) {
  const auto& n = std::any_cast<const Standardize&>(settings);
  if (sample.dtype != DType::f32)
    fail(
        Fault::spec,
        "target transform 'standardize' needs real numbers, but the targets are classes; leave the "
        "transform out, or read the targets as numbers (csv: leave `classes` out)");
  for (const std::vector<double>* values : {&n.mean, &n.std})
    if (values->size() != 1 && values->size() != columns_of(sample))
      fail(Fault::spec, "target transform 'standardize': '{}' has {}, but a target has {}",
           values == &n.mean ? "mean" : "std", counted(values->size(), "number"),
           counted(columns_of(sample), "column"));
  return sample;
}

void apply(const std::any& settings, const TensorView& in, const TensorView& out) {
  const auto& n = std::any_cast<const Standardize&>(settings);
  const std::span<const float> from = in.as<const float>();
  const std::span<float> to = out.as<float>();
  if (from.empty()) return;
  const size_t columns = columns_of({DType::f32, in.desc.shape.tail(1)});
  const size_t samples = static_cast<size_t>(in.desc.shape[0]);
  const size_t inner = from.size() / (samples * columns);
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t column = i / inner % columns;
    const double x = from[i];
    to[i] = static_cast<float>((x - of_column(n.mean, column)) / of_column(n.std, column));
  }
}

void undo(const std::any& settings, const TensorView& target) {
  const auto& n = std::any_cast<const Standardize&>(settings);
  const std::span<float> values = target.as<float>();
  const size_t columns = columns_of(target.desc);
  const size_t inner = values.size() / columns;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    values[i] = static_cast<float>(x * of_column(n.std, i / inner) + of_column(n.mean, i / inner));
  }
}

std::vector<double> units(const std::any& settings, const TensorDesc& target) {
  const auto& n = std::any_cast<const Standardize&>(settings);
  std::vector<double> out(static_cast<size_t>(target.shape.elements()));
  const size_t inner = out.size() / columns_of(target);
  for (size_t i = 0; i < out.size(); ++i) out[i] = of_column(n.std, i / inner);
  return out;
}

std::string torch(const std::any& settings, int64_t /*classes*/) {
  const auto& n = std::any_cast<const Standardize&>(settings);
  return fmt::format(
      "mean, std = (torch.tensor(v, dtype=torch.float64).view(-1, *[1] * (y.dim() - 2))\n"
      "             for v in ([{}], [{}]))\n"
      "y = ((y - mean) / std).float()\n",
      fmt::join(n.mean, ", "), fmt::join(n.std, ", "));
}

}  // namespace

TargetTransformType standardize() {
  TargetTransformType t{registry_entry<Standardize>(
      "standardize", "Standardizes targets that are values: (y - mean) / std.")};
  t.infer = infer;
  t.apply = apply;
  t.undo = undo;
  t.units = units;
  t.torch = torch;
  return t;
}

}  // namespace dpt::target_transforms
