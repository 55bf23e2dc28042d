#include <fmt/format.h>

#include "base/count.h"
#include "data/dataset.h"

namespace dpt::transforms {
namespace {

// (x - mean[c]) / std[c] in f32, like torchvision's Normalize. Channel c is the index in the first
// dimension of a sample: an image's channel or a table's column.
struct Normalize {
  static constexpr Usage kUsage{
      "torchvision.transforms.Normalize",
      "transforms: [to_tensor, {normalize: {mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}}]"};

  std::vector<double> mean, std;
  static KeyTable<Normalize> keys() {
    return KeyTable<Normalize>()
        .required("mean", &Normalize::mean, "number to subtract, or one per channel")
        .required("std", &Normalize::std, "number to divide by, or one per channel", kPositive);
  }
};

float of_channel(const std::vector<double>& values, int64_t channel) {
  return static_cast<float>(values[values.size() == 1 ? 0 : static_cast<size_t>(channel)]);
}

void apply(const std::any& settings, float* x, size_t count, int64_t channel, DType /*from*/) {
  const auto& n = std::any_cast<const Normalize&>(settings);
  const float mean = of_channel(n.mean, channel), std = of_channel(n.std, channel);
  for (size_t i = 0; i < count; ++i) x[i] = (x[i] - mean) / std;
}

std::string refuses(const std::any& settings, const TensorDesc& sample) {
  const auto& n = std::any_cast<const Normalize&>(settings);
  const size_t channels = sample.shape.rank() == 0 ? 1 : static_cast<size_t>(sample.shape[0]);
  for (const std::vector<double>* values : {&n.mean, &n.std})
    if (values->size() != 1 && values->size() != channels)
      return fmt::format("'{}' has {}, but samples {} have {}", values == &n.mean ? "mean" : "std",
                         counted(values->size(), "number"), sample.shape.str(),
                         counted(channels, "channel"));
  return "";
}

std::string torch(const std::any& settings) {
  const auto& n = std::any_cast<const Normalize&>(settings);
  return fmt::format(
      "mean, std = (torch.tensor(v).view(-1, *[1] * (x.dim() - 2)) for v in ([{}], [{}]))\n"
      "x = (x - mean) / std\n",
      fmt::join(n.mean, ", "), fmt::join(n.std, ", "));
}

}  // namespace

TransformType normalize() {
  TransformType t{registry_entry<Normalize>("normalize", "Normalizes channels: (x - mean) / std.")};
  t.apply = apply;
  t.per_channel = true;
  t.refuses = refuses;
  t.torch = torch;
  return t;
}

}  // namespace dpt::transforms
