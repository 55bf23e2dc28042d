#include <cmath>

#include <fmt/format.h>

#include "base/count.h"
#include "data/dataset.h"
#include "formats/python_call.h"

namespace dpt::transforms {
namespace {

// Zhong et al. 2017, like torchvision's RandomErasing: a rectangle whose share of the image's area
// is in `scale` and whose height / width is in `ratio`, log-uniformly distributed. Up to ten tries
// are made to find one that fits into the image.
struct Erasing {
  static constexpr Usage kUsage{
      "torchvision.transforms.RandomErasing",
      "transforms: [to_tensor, {random_erasing: {p: 0.5, scale: [0.02, 0.33], ratio: [0.3, 3.3],\n"
      "    value: 0}}]"};

  double p = 0.5;
  std::vector<double> scale{0.02, 0.33}, ratio{0.3, 3.3}, value{0};
  static KeyTable<Erasing> keys() {
    return KeyTable<Erasing>()
        .optional("p", &Erasing::p, "probability that an image is erased", kProbability)
        .optional("scale", &Erasing::scale, "smallest and largest share of the image's area",
                  kProbability)
        .optional("ratio", &Erasing::ratio, "smallest and largest ratio of height to width",
                  kPositive)
        .optional("value", &Erasing::value,
                  "value of the erased pixels: one number, or one per channel");
  }
  static void check(const Erasing& c, const Owner& owner, Diagnostics& d) {
    for (const auto& [name, range] : {std::pair{"scale", &c.scale}, {"ratio", &c.ratio}})
      if (range->size() != 2 || range->front() > range->back())
        d.error(owner.at(name),
                fmt::format("'{}' must be two numbers, the smaller one first", name));
    if (c.value.empty())
      d.error(owner.at("value"), "'value' must be one number, or one per channel");
  }
};

std::string refuses(const std::any& settings, const TensorDesc& sample) {
  const size_t values = std::any_cast<const Erasing&>(settings).value.size();
  if (values == 1 || values == static_cast<size_t>(sample.shape[0])) return "";
  return fmt::format("'value' has {}, but samples {} have {}", counted(values, "number"),
                     sample.shape.str(), counted(sample.shape[0], "channel"));
}

augment::Change change(const std::any& settings) {
  const auto& c = std::any_cast<const Erasing&>(settings);
  return augment::Erasing{.p = c.p,
                          .least_area = c.scale[0],
                          .most_area = c.scale[1],
                          .least_log_ratio = std::log(c.ratio[0]),
                          .most_log_ratio = std::log(c.ratio[1])};
}

std::vector<double> fill(const std::any& settings) {
  return std::any_cast<const Erasing&>(settings).value;
}

std::string torch(const std::any& settings, Split split) {
  if (split == Split::test) return "";
  const auto& e = std::any_cast<const Erasing&>(settings);
  PythonCall call("transforms.RandomErasing");
  call.key("p", e.p, 0.5).key("scale", e.scale).key("ratio", e.ratio);
  if (e.value.size() == 1)
    call.key("value", e.value[0]);
  else
    call.key("value", e.value);
  return "x = " + call.str() + "(x)\n";
}

}  // namespace

TransformType random_erasing() {
  TransformType t{registry_entry<Erasing>(
      "random_erasing", "Erases a random rectangle of some images, in training only.")};
  t.refuses = refuses;
  t.random = {.change = change, .fill = fill, .torch = torch};
  return t;
}

}  // namespace dpt::transforms
