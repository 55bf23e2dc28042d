#include "data/random_transforms.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/image_shape.h"
#include "data/element_transforms.h"

namespace dpt {
namespace {

// Adds a random transform. Its fill colors go through the element-wise transforms between it and
// `end`, as pixels do.
void add_change(std::span<const Choice> transforms, size_t index, size_t end, int64_t channels,
                DType from, augment::Changes& changes, std::vector<float>& colours) {
  if (changes.count == augment::Changes::kMost)
    fail(Fault::spec, "more than {} random transforms", augment::Changes::kMost);
  const TransformType& type = type_of_transform(transforms[index]);
  const std::any& settings = transforms[index].settings;
  changes.all[changes.count++] = {type.random.change(settings), index};
  const std::vector<double> fill =
      type.random.fill ? type.random.fill(settings) : std::vector<double>{0};
  std::vector<Choice> later;
  for (const Choice& t : transforms.subspan(index, end - index))
    if (!type_of_transform(t).draws()) later.push_back(t);
  for (int64_t c = 0; c < channels; ++c) {
    float colour = static_cast<float>(fill[fill.size() == 1 ? 0 : static_cast<size_t>(c)]);
    apply_all(later, &colour, 1, c, from);
    colours.push_back(colour);
  }
}

bool moves_pixels(const augment::Change& change) {
  return std::holds_alternative<augment::Crop>(change) ||
         std::holds_alternative<augment::Flip>(change);
}

}  // namespace

bool mixes(std::span<const Choice> transforms) {
  return std::ranges::any_of(
      transforms, [](const Choice& t) { return type_of_transform(t).mixing != nullptr; });
}

bool takes_input(std::span<const Choice> target_transforms) {
  return std::ranges::any_of(target_transforms, [](const Choice& t) {
    return static_cast<const TargetTransformType*>(t.what)->takes_input;
  });
}

RandomTransforms::RandomTransforms(std::span<const Choice> transforms, const TensorDesc& sample,
                                   Split split)
    : shape_(sample.shape) {
  changes_.draws = split == Split::train;
  const auto changes_colors = [](const Choice& t) {
    return type_of_transform(t).colors != nullptr;
  };
  const auto jitter = split == Split::train
                          ? std::ranges::find_if(transforms, changes_colors) - transforms.begin()
                          : std::ssize(transforms);
  for (size_t i = 0; i < transforms.size(); ++i) {
    const TransformType& type = type_of_transform(transforms[i]);
    const std::any& settings = transforms[i].settings;
    if (type.random.change != nullptr && shape_.rank() != 3)
      fail(Fault::spec,
           "transform '{}' is for images [channels, height, width], but the data set's samples are "
           "{}{}",
           type.name, shape_.str(),
           like_gray_image(shape_) ? "; save gray images as [N, 1, H, W]: numpy.save(\"x.npy\", "
                                     "x[:, None])"
                                   : "");
    const std::string why = type.refuses ? type.refuses(settings, {sample.dtype, shape_}) : "";
    if (!why.empty()) fail(Fault::spec, "transform '{}': {}", type.name, why);
    if (!type.draws()) {
      const bool late = type.first_of_bytes && sample.dtype == DType::u8 && !fixed_.empty();
      if (late && !type_of_transform(fixed_.back()).first_of_bytes)
        fail(Fault::spec,
             "transform '{0}' makes bytes numbers from 0 to 1, and does nothing after '{1}'; list "
             "'{0}' before '{1}'",
             type.name, fixed_.back().what->name);
      (std::cmp_less(i, jitter) ? fixed_ : after_jitter_).push_back(transforms[i]);
      continue;
    }
    const DType from = fixed_.empty() ? sample.dtype : DType::f32;
    const Shape shape = type.random.shape ? type.random.shape(settings, shape_) : shape_;
    if (split == Split::train || shape != shape_)
      add_random(transforms, i, static_cast<size_t>(jitter), shape, from);
    shape_ = shape;
  }
}

// image: the shape after the transform. from: the dtype of elements at its position in the list.
void RandomTransforms::add_random(std::span<const Choice> transforms, size_t index, size_t jitter,
                                  const Shape& image, DType from) {
  const TransformType& type = type_of_transform(transforms[index]);
  const std::any& settings = transforms[index].settings;
  if (type.mixing != nullptr) {
    if (mixings_.empty()) mixing_index_ = index;
    mixings_.push_back(type.mixing(settings));
    if (mixings_.back().kind == Mixing::Kind::cutmix && image.rank() != 3)
      fail(Fault::spec,
           "transform 'cutmix' is for images [channels, height, width], but the data set's samples "
           "are {}",
           image.str());
  } else if (type.colors != nullptr) {
    if (jitter_) fail(Fault::spec, "transform '{}' may be listed once only", type.name);
    if (from == DType::u8)
      fail(Fault::spec, "transform '{}' takes values from 0 to 1; list 'to_tensor' before it",
           type.name);
    for (const Choice& t : fixed_)
      if (type_of_transform(t).per_channel)
        fail(Fault::spec,
             "transform '{0}' takes values from 0 to 1, which '{1}' before it changes; list '{1}' "
             "after '{0}'",
             type.name, t.what->name);
    jitter_ = type.colors(settings);
    jitter_index_ = index;
  } else if (index < jitter) {
    add_change(transforms, index, jitter, image[0], from, changes_, colours_);
  } else {
    const augment::Change change = type.random.change(settings);
    if (moves_pixels(change))
      fail(Fault::spec, "list transform '{}' before '{}'", type.name,
           type_of_transform(transforms[jitter]).name);
    add_change(transforms, index, transforms.size(), image[0], from, painted_, painted_colours_);
  }
}

augment::Changes RandomTransforms::moves() const {
  augment::Changes out{.draws = changes_.draws};
  for (const augment::Changes::One& one : std::span(changes_.all, changes_.count))
    if (moves_pixels(one.change)) out.all[out.count++] = one;
  return out;
}

void RandomTransforms::change_colors(DrawnSample sample, const AugmentSeed& augment_seed,
                                     float* x) const {
  const Shape& image = shape_;
  const auto all = static_cast<size_t>(image.elements());
  jitter_colors(draw_jitter(*jitter_, augment_seed, sample, jitter_index_), image[0], {x, all});
  const size_t pixels = all / static_cast<size_t>(image[0]);
  for (int64_t c = 0; c < image[0]; ++c)
    apply_all(after_jitter_, x + static_cast<size_t>(c) * pixels, pixels, c, DType::f32);
  if (painted_.count == 0) return;
  const augment::Frame frame = frame_of(painted_, sample, augment_seed, image[1], image[2]);
  for (int64_t c = 0; c < image[0]; ++c)
    for (int32_t p = 0; p < frame.patches; ++p)
      paint(frame, frame.patch[p],
            painted_colours_[static_cast<size_t>(frame.patch[p].colour * image[0] + c)],
            x + static_cast<size_t>(c) * pixels);
}

MixDraw RandomTransforms::mix(DrawnSample sample, const AugmentSeed& augment_seed,
                              size_t samples) const {
  const bool image = shape_.rank() == 3;
  return draw_mix(mixings_, augment_seed, sample, mixing_index_, samples, image ? shape_[1] : 0,
                  image ? shape_[2] : 0);
}

}  // namespace dpt
