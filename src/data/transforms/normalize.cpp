#include <fmt/format.h>

#include "base/count.h"
#include "data/dataset.h"

namespace dpt::transforms {
namespace {

// normalize: (x - mean[c]) / std[c] in f32, as torchvision's Normalize. Channel c is the place in
// the first extent of a sample: an image's channel, a table's column.
struct Normalize {
  std::vector<double> mean, std;
  static KeyTable<Normalize> keys() {
    return KeyTable<Normalize>()
        .required("mean", &Normalize::mean,
                  "what is subtracted: one number, or one for each channel")
        .required("std", &Normalize::std,
                  "what is divided by then: one number, or one for each channel", kPositive);
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
  return {nameable<Normalize>("normalize", "(x - mean) / std, one mean and std for each channel."),
          apply, true, refuses, torch};
}

}  // namespace dpt::transforms
