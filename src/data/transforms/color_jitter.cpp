#include "data/color_jitter.h"

#include <fmt/format.h>

#include "data/dataset.h"
#include "formats/python_call.h"

namespace dpt::transforms {
namespace {

// Like torchvision's ColorJitter: each key is a number x for factors in 1 - x .. 1 + x, or two
// numbers. The four changes are applied in random order.
struct Jitter {
  static constexpr Usage kUsage{
      "torchvision.transforms.ColorJitter",
      "transforms: [to_tensor, {color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4,\n"
      "    hue: 0.1}}, {normalize: {mean: 0.5, std: 0.25}}]"};

  std::vector<double> brightness, contrast, saturation, hue;
  static KeyTable<Jitter> keys() {
    return KeyTable<Jitter>()
        .optional("brightness", &Jitter::brightness,
                  "b for factors between 1 - b and 1 + b, or the two limits")
        .optional("contrast", &Jitter::contrast, "likewise")
        .optional("saturation", &Jitter::saturation, "likewise")
        .optional("hue", &Jitter::hue,
                  "h for a shift between -h and h, or the two limits, as a share of the color "
                  "circle; at most 0.5");
  }
  static void check(const Jitter& c, const Owner& owner, Diagnostics& d) {
    using Values = const std::vector<double>*;
    for (const auto& [name, values] :
         {std::pair<std::string_view, Values>{"brightness", &c.brightness},
          {"contrast", &c.contrast},
          {"saturation", &c.saturation},
          {"hue", &c.hue}}) {
      const bool hue = name == "hue";
      const double low = hue && values->size() == 2 ? -0.5 : 0;
      const auto outside = [&](double v) { return v < low || (hue && v > 0.5); };
      if (values->size() > 2 || std::ranges::any_of(*values, outside) ||
          (values->size() == 2 && values->front() > values->back()))
        d.error(owner.at(name),
                fmt::format("'{}' must be one number {}, or two, the smaller one first", name,
                            hue ? "between 0 and 0.5" : "that is not negative"));
    }
    if (c.brightness.empty() && c.contrast.empty() && c.saturation.empty() && c.hue.empty())
      d.error(owner.where,
              "color_jitter needs at least one of 'brightness', 'contrast', 'saturation' and "
              "'hue'; without them it changes nothing");
  }
};

std::optional<ColorJitter::Range> range(const std::vector<double>& values, double center) {
  if (values.empty()) return std::nullopt;
  if (values.size() == 2) return ColorJitter::Range{values[0], values[1]};
  if (values[0] == 0) return std::nullopt;
  const double low = center - values[0];
  return ColorJitter::Range{center == 1 ? std::max(low, 0.0) : low, center + values[0]};
}

ColorJitter colors(const std::any& settings) {
  const auto& c = std::any_cast<const Jitter&>(settings);
  return {.brightness = range(c.brightness, 1),
          .contrast = range(c.contrast, 1),
          .saturation = range(c.saturation, 1),
          .hue = range(c.hue, 0)};
}

std::string refuses(const std::any& /*settings*/, const TensorDesc& sample) {
  if (sample.shape.rank() == 3 && (sample.shape[0] == 1 || sample.shape[0] == 3)) return "";
  return fmt::format(
      "it changes gray and RGB images, with 1 or 3 channels [channels, height, width], but the "
      "data "
      "set's samples are {}{}; leave it out",
      sample.shape.str(),
      sample.shape.rank() == 3 ? fmt::format(", with {} channels", sample.shape[0]) : "");
}

std::string torch(const std::any& settings, Split split) {
  if (split == Split::test) return "";
  const auto& c = std::any_cast<const Jitter&>(settings);
  PythonCall call("transforms.ColorJitter");
  const auto key = [&](std::string_view name, const std::vector<double>& values) {
    if (values.size() == 1)
      call.key(name, values[0], 0);
    else if (!values.empty())
      call.key(name, values);
  };
  key("brightness", c.brightness);
  key("contrast", c.contrast);
  key("saturation", c.saturation);
  key("hue", c.hue);
  return "x = " + call.str() + "(x)\n";
}

}  // namespace

TransformType color_jitter() {
  TransformType t{registry_entry<Jitter>(
      "color_jitter",
      "Changes brightness, contrast, saturation and hue at random, in training only.")};
  t.refuses = refuses;
  t.colors = colors;
  t.random.torch = torch;
  return t;
}

}  // namespace dpt::transforms
