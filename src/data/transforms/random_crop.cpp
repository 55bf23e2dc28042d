#include <fmt/format.h>

#include "data/dataset.h"
#include "formats/python_call.h"

namespace dpt::transforms {
namespace {

// Like torchvision's RandomCrop with padding_mode constant: a window of `size` anywhere in the
// padded image. An evaluation takes the center, like CenterCrop.
struct RandomCrop {
  static constexpr Usage kUsage{
      "torchvision.transforms.RandomCrop",
      "transforms: [{random_crop: {size: 32, padding: 4, fill: 0}}, to_tensor]"};

  std::vector<int64_t> size, padding;
  double fill = 0;
  static KeyTable<RandomCrop> keys() {
    return KeyTable<RandomCrop>()
        .optional("size", &RandomCrop::size,
                  "height and width of the crop, or one number for both; by default the size of "
                  "the image",
                  kSize)
        .optional("padding", &RandomCrop::padding,
                  "pixels around the image: one number, [left and right, top and bottom] or "
                  "[left, top, right, bottom]",
                  kSizeOrZero)
        .optional("fill", &RandomCrop::fill,
                  "value of the padding, before the transforms that follow");
  }
  static void check(const RandomCrop& c, const Owner& owner, Diagnostics& d) {
    if (c.size.size() > 2)
      d.error(owner.at("size"), "'size' must be one number, or a height and a width");
    if (c.padding.size() == 3 || c.padding.size() > 4)
      d.error(owner.at("padding"), "'padding' must be one number, two or four");
    if (c.size.empty() && c.padding.empty())
      d.error(owner.where,
              "random_crop needs 'size', 'padding' or both; without them it changes nothing");
  }
};

struct Window {
  augment::Rect padded;  // in coordinates of the image, whose pixels are 0 .. height and 0 .. width
  int64_t height, width;
};

Window window(const RandomCrop& c, int64_t height, int64_t width) {
  const std::vector<int64_t>& p = c.padding;
  const auto side = [&](size_t i) { return p.empty() ? 0 : p[i % p.size()]; };
  return {.padded = {-side(1), -side(0), height + side(3), width + side(2)},
          .height = c.size.empty() ? height : c.size[0],
          .width = c.size.empty() ? width : c.size.back()};
}

std::string refuses(const std::any& settings, const TensorDesc& sample) {
  const Window w =
      window(std::any_cast<const RandomCrop&>(settings), sample.shape[1], sample.shape[2]);
  const int64_t height = w.padded.bottom - w.padded.top, width = w.padded.right - w.padded.left;
  if (w.height <= height && w.width <= width) return "";
  return fmt::format("a window of {} x {} does not fit into images {}, with padding {} x {}",
                     w.height, w.width, sample.shape.str(), height, width);
}

Shape shape(const std::any& settings, const Shape& image) {
  const Window w = window(std::any_cast<const RandomCrop&>(settings), image[1], image[2]);
  return {image[0], w.height, w.width};
}

augment::Change change(const std::any& settings) {
  const auto& c = std::any_cast<const RandomCrop&>(settings);
  const Window w = window(c, 0, 0);
  return augment::Crop{.pad_top = -w.padded.top,
                       .pad_left = -w.padded.left,
                       .pad_bottom = w.padded.bottom,
                       .pad_right = w.padded.right,
                       .height = w.height,
                       .width = w.width};
}

std::vector<double> fill(const std::any& settings) {
  return {std::any_cast<const RandomCrop&>(settings).fill};
}

// fill: whether padding has the value of inputs.
std::string torch_of(const std::any& settings, Split split, std::string_view name, bool fill) {
  const auto& c = std::any_cast<const RandomCrop&>(settings);
  const bool train = split == Split::train;
  if (!train && c.size.empty()) return "";
  PythonCall call(train ? "transforms.RandomCrop" : "transforms.CenterCrop");
  if (c.size.empty())
    call.expression("x.shape[-2:]");
  else
    call.arg(std::vector<int64_t>{c.size.front(), c.size.back()});
  if (train && c.padding.size() == 1)
    call.key("padding", c.padding[0], 0);
  else if (train && !c.padding.empty())
    call.key("padding", c.padding);
  if (train && fill) call.key("fill", c.fill, 0);
  return fmt::format("{0} = {1}({0})\n", name, call.str());
}

std::string torch(const std::any& settings, Split split) {
  return torch_of(settings, split, "x", true);
}

std::string torch_targets(const std::any& settings, Split split) {
  return torch_of(settings, split, "y", false);
}

}  // namespace

TransformType random_crop() {
  TransformType t{registry_entry<RandomCrop>(
      "random_crop",
      "Takes a random crop of the padded image in training, and the center crop in evaluation.")};
  t.refuses = refuses;
  t.random = {change, fill, shape, torch, torch_targets};
  return t;
}

}  // namespace dpt::transforms
