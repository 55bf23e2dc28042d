#include "data/batch_loader.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "data/element_transforms.h"
#include "data/readers/bytes.h"
#include "data/tables.h"

namespace dpt {
namespace {

// Copies rows of i32 that may overlap, since `step` may be less than `features`.
void copy_rows(const int32_t* data, int64_t step, std::span<const uint32_t> rows, size_t features,
               int32_t* x) {
  for (const uint32_t row : rows)
    x = std::copy_n(data + static_cast<size_t>(row) * static_cast<size_t>(step), features, x);
}

const TargetTransformType& target_type_of(const Choice& c) {
  return static_cast<const TargetTransformType&>(*c.what);
}

size_t elements(const TensorDesc& desc) { return static_cast<size_t>(desc.shape.elements()); }

int64_t channels_of(const Shape& sample) { return sample.rank() == 0 ? 1 : sample[0]; }

// Makes the targets of `rows` samples. sample: before the transforms; becomes that after them.
// Unless `made`, values are not computed.
std::shared_ptr<std::byte[]> transformed(std::span<const Choice> transforms, const std::byte* data,
                                         int64_t rows, int64_t classes, bool made,
                                         TensorDesc& sample) {
  const auto batch = [&] { return TensorDesc{sample.dtype, sample.shape.batch(rows)}; };
  // apply() only reads its input, so the const_cast is safe.
  TensorView now{batch(), const_cast<std::byte*>(data)};
  std::shared_ptr<std::byte[]> out;
  for (const Choice& t : transforms) {
    sample = target_type_of(t).infer(t.settings, sample, classes);
    std::shared_ptr<std::byte[]> next = allocate_bytes(batch().bytes());
    const TensorView to{batch(), next.get()};
    if (made) target_type_of(t).apply(t.settings, now, to);
    out = std::move(next);
    now = to;
  }
  return out;
}

// Calls f for blocks of rows, as int64. The indices are widened on the stack, because a training
// step must not allocate.
template <class F>
void in_blocks(std::span<const uint32_t> rows, F&& f) {
  constexpr size_t kBlock = 256;
  std::array<int64_t, kBlock> wide;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (!rows.empty()) {
    const size_t n = std::min(kBlock, rows.size());
    std::copy_n(rows.begin(), n, wide.begin());
    f(std::span<int64_t>(wide.data(), n));
    rows = rows.subspan(n);
  }
}

template <class T>
const T* as(const std::shared_ptr<const std::byte[]>& data) {
  return reinterpret_cast<const T*>(data.get());
}

}  // namespace

BatchLoader::BatchLoader(Dataset dataset, std::span<const Choice> transforms,
                         std::span<const Choice> target_transforms, const GatherKernels& gathers,
                         Split split, std::vector<uint32_t> training_rows)
    : dataset_(std::move(dataset)), gathers_(gathers), training_rows_(std::move(training_rows)) {
  require(dataset_.inputs.size() == dataset_.targets.size(),
          "inputs and targets of different counts");
  for (const Table* t : {&dataset_.inputs, &dataset_.targets})
    require(t->stride == 0 || t->desc.dtype == DType::i32, "samples that overlap are tokens");
  prepare_inputs(transforms, split);
  prepare_targets(target_transforms);
  prepare_moves(transforms, target_transforms);
}

void BatchLoader::prepare_inputs(std::span<const Choice> transforms, Split split) {
  const Table& table = dataset_.inputs;
  const TensorDesc sample{table.desc.dtype, table.sample()};
  inputs_ = table.data;
  if (sample.dtype == DType::i32) {
    input_ = sample;
    if (!transforms.empty())
      fail(Fault::spec,
           "transform '{}' is for numbers, but the data set's inputs are tokens ({} i32)",
           transforms.front().what->name, sample.shape.str());
    return;
  }
  random_ = RandomTransforms(transforms, sample, split);
  input_ = {DType::f32, random_.shape()};
  const std::vector<Choice>& fixed = random_.fixed();
  const bool by_channel =
      std::ranges::any_of(fixed, [](const Choice& t) { return type_of_transform(t).per_channel; });
  const int64_t channels = by_channel ? channels_of(sample.shape) : 1;
  if (sample.dtype == DType::u8) {
    bytes_ = ByteTables(fixed, channels, gathers_);
    return;
  }
  require(sample.dtype == DType::f32 && !dataset_.reader, "inputs are u8, or i32 or f32 in memory");
  if (fixed.empty() || !dataset_.made) return;
  const size_t all = elements(table.desc), inner = elements(sample) / static_cast<size_t>(channels);
  const std::shared_ptr<std::byte[]> changed = allocate_bytes(all * sizeof(float));
  auto* x = reinterpret_cast<float*>(changed.get());
  std::copy_n(as<float>(table.data), all, x);
  for (size_t done = 0; done < all; done += inner)
    apply_all(fixed, x + done, inner, static_cast<int64_t>(done / inner) % channels, DType::f32);
  inputs_ = changed;
}

void BatchLoader::prepare_targets(std::span<const Choice> transforms) {
  targets_ = dataset_.targets.data;
  target_ = {dataset_.targets.desc.dtype, dataset_.targets.sample()};
  target_step_ = dataset_.targets.step();
  target_is_input_ = takes_input(transforms);
  if (target_is_input_) {
    if (transforms.size() > 1)
      fail(Fault::spec, "target transform 'input' must be the only one, but there are {}",
           transforms.size());
    if (mixes())
      fail(Fault::spec,
           "target transform 'input' is not possible with 'mixup' and 'cutmix', which "
           "mix classes; delete them");
    target_ = target_type_of(transforms[0]).infer(transforms[0].settings, input_, 0);
    return;
  }
  if (mixes() && (dataset_.classes == 0 || target_.shape.rank() > 0))
    fail(Fault::spec,
         "transforms 'mixup' and 'cutmix' need one class per sample, but the targets are {} {}",
         target_.shape.str(), name_of(target_.dtype));
  if (mixes() && transforms.empty()) {
    const auto classes = static_cast<size_t>(dataset_.classes);
    target_ = {DType::f32, {dataset_.classes}};
    of_class_.assign(classes * classes, 0);
    for (size_t c = 0; c < classes; ++c) of_class_[c * classes + c] = 1;
    return;
  }
  if (transforms.empty()) return;
  const Table table = without_overlap(dataset_.targets);
  // There are few classes, so each one's target is computed once. Other targets are transformed all
  // at once.
  const bool of_classes = dataset_.classes > 0 && target_.shape.rank() == 0;
  const int64_t rows = of_classes ? dataset_.classes : table.size();
  std::vector<int32_t> each(of_classes ? static_cast<size_t>(rows) : 0);
  for (size_t c = 0; c < each.size(); ++c) each[c] = static_cast<int32_t>(c);
  std::shared_ptr<std::byte[]> held = transformed(
      transforms, of_classes ? reinterpret_cast<const std::byte*>(each.data()) : table.data.get(),
      rows, dataset_.classes, dataset_.made, target_);
  if (!dataset_.made) return;
  if (of_classes && target_.dtype == DType::f32) {
    const auto* values = reinterpret_cast<const float*>(held.get());
    of_class_.assign(values, values + static_cast<size_t>(rows) * elements(target_));
  } else {
    require(!of_classes, "a target transform that turns classes into classes");
    targets_ = std::move(held);
    target_step_ = target_.shape.elements();
  }
}

void BatchLoader::prepare_moves(std::span<const Choice> transforms,
                                std::span<const Choice> target_transforms) {
  augment::Changes moves = random_.moves();
  const Shape target = dataset_.targets.sample(), image = dataset_.inputs.sample();
  const int rank = target.rank();
  const int64_t pixels = moves.count > 0 ? image[1] * image[2] : 0;
  const bool flat =
      rank == 1 && pixels > 1 && (target[0] == pixels || target[0] == image.elements());
  if (moves.count == 0 || target_is_input_ || (rank < 2 && !flat)) return;
  const std::string_view mover = transforms[moves.all[0].index].what->name;
  if (flat || target.tail(rank - 2) != image.tail(1))
    fail(Fault::spec,
         "transform '{}' moves pixels of the images {}, but the targets {} can't be moved alike: "
         "they need the same height and width as their last two dimensions",
         mover, image.str(), target.str());
  if (target_.shape != target)
    fail(Fault::spec,
         "transform '{}' moves pixels, which is not possible with target transform '{}' for "
         "targets of one class per pixel; leave one of them out",
         mover, target_transforms[0].what->name);
  moves_ = moves;
  target_image_ = {target.elements() / pixels, image[1], image[2]};
  const auto channels = static_cast<size_t>(target_image_[0]);
  std::vector<float> zeros(static_cast<size_t>(target.elements()));
  TensorDesc sample{dataset_.targets.desc.dtype, target};
  const std::shared_ptr<std::byte[]> changed =
      transformed(target_transforms, reinterpret_cast<const std::byte*>(zeros.data()), 1,
                  dataset_.classes, true, sample);
  const float* const fill = changed ? as<float>(changed) : zeros.data();
  for (size_t i = 0; i < static_cast<size_t>(moves.count) * channels; ++i)
    target_fills_.push_back(fill[i % channels * static_cast<size_t>(pixels)]);
  const augment::Frame frame = frame_of(moves_, {}, {}, image[1], image[2]);
  target_.shape = target.with(rank - 2, frame.height).with(rank - 1, frame.width);
}

template <class T>
void BatchLoader::draw_targets(DrawnSamples samples, const AugmentSeed& augment_seed,
                               T* out) const {
  for (size_t i = 0; i < samples.size(); ++i, out += elements(target_)) {
    const DrawnSample sample = samples[i];
    const T* const from =
        as<T>(targets_) + static_cast<size_t>(sample.row) * static_cast<size_t>(target_step_);
    draw(frame_of(moves_, sample, augment_seed, target_image_[1], target_image_[2]),
         target_fills_.data(), target_image_[0], out,
         [&](int64_t first, size_t count, int64_t /*channel*/, T* to) {
           std::copy_n(from + first, count, to);
         });
  }
}

void BatchLoader::draw_frames(DrawnSamples samples, const AugmentSeed& augment_seed,
                              const std::byte* base, bool staged, float* out) const {
  const Shape image = dataset_.inputs.sample();
  const auto features = static_cast<size_t>(image.elements());
  constexpr int64_t kFirst = 0;
  for (size_t i = 0; i < samples.size(); ++i, out += elements(input_)) {
    const DrawnSample sample = samples[i];
    const augment::Frame frame =
        frame_of(random_.changes(), sample, augment_seed, image[1], image[2]);
    const size_t first = (staged ? i : sample.row) * features;
    draw(frame, random_.colours().data(), image[0], out,
         [&](int64_t from, size_t count, int64_t channel, float* to) {
           const size_t at = first + static_cast<size_t>(from);
           if (bytes_.empty())
             return gathers_.f32(reinterpret_cast<const float*>(base) + at, &kFirst, 1, count, to);
           bytes_.convert(reinterpret_cast<const uint8_t*>(base) + at, count, channel, to);
         });
  }
}

std::shared_ptr<std::byte[]> BatchLoader::read(std::span<const uint32_t> rows) const {
  const size_t bytes = static_cast<size_t>(dataset_.inputs.sample().elements());
  std::shared_ptr<std::byte[]> out = allocate_bytes(rows.size() * bytes);
  for (size_t i = 0; i < rows.size(); ++i)
    dataset_.reader->read(rows[i], {out.get() + i * bytes, bytes});
  return out;
}

void BatchLoader::make(DrawnSamples samples, const AugmentSeed& augment_seed, const std::byte* base,
                       bool staged, float* out) const {
  const size_t features = elements(input_);
  if (random_.changes().count > 0) {
    draw_frames(samples, augment_seed, base, staged, out);
  } else {
    float* to = out;
    size_t done = 0;
    in_blocks(samples.rows(), [&](std::span<int64_t> block) {
      if (staged) std::iota(block.begin(), block.end(), done);
      if (!bytes_.empty())
        bytes_.gather(reinterpret_cast<const uint8_t*>(base), block, features, to);
      else
        gathers_.f32(reinterpret_cast<const float*>(base), block.data(), block.size(), features,
                     to);
      to += block.size() * features;
      done += block.size();
    });
  }
  for (size_t i = 0; i < samples.size() && random_.changes_colors(); ++i)
    random_.change_colors(samples[i], augment_seed, out + i * features);
}

MixDraw BatchLoader::mix_of(DrawnSample sample, const AugmentSeed& augment_seed) const {
  return random_.mix(sample, augment_seed,
                     training_rows_.empty() ? static_cast<size_t>(size()) : training_rows_.size());
}

uint32_t BatchLoader::partner(DrawnSample sample, const AugmentSeed& augment_seed) const {
  const MixDraw draw = mix_of(sample, augment_seed);
  if (!draw.mixed) return sample.row;
  return training_rows_.empty() ? static_cast<uint32_t>(draw.partner)
                                : training_rows_[draw.partner];
}

void BatchLoader::inputs(DrawnSamples samples, float* out, const AugmentSeed& augment_seed,
                         const std::byte* staged) const {
  require(input_.dtype == DType::f32, "inputs are not f32");
  std::shared_ptr<std::byte[]> made;
  if (dataset_.reader && staged == nullptr) {
    std::vector<uint32_t> wanted;
    for (size_t i = 0; i < samples.size(); ++i) {
      wanted.push_back(samples[i].row);
      if (mixes()) wanted.push_back(partner(samples[i], augment_seed));
    }
    made = read(wanted);
    staged = made.get();
  }
  const std::byte* base = staged != nullptr ? staged : inputs_.get();
  if (!mixes()) return make(samples, augment_seed, base, staged != nullptr, out);
  const size_t features = elements(input_);
  const auto bytes = static_cast<size_t>(dataset_.inputs.sample().elements());  // of u8
  thread_local std::vector<float> other;  // kept, because a training step must not allocate
  other.resize(features);
  const bool image = input_.shape.rank() == 3;
  for (size_t i = 0; i < samples.size(); ++i) {
    const DrawnSamples sample = samples.subspan(i, 1);
    const uint32_t with = partner(sample[0], augment_seed);
    make(sample, augment_seed, base, staged != nullptr, out);
    if (staged != nullptr) base += bytes;
    make({{&with, 1}, sample.repeats()}, augment_seed, base, staged != nullptr, other.data());
    if (staged != nullptr) base += bytes;
    mix_inputs(mix_of(sample[0], augment_seed), other, image ? input_.shape[1] : 0,
               image ? input_.shape[2] : 0, {out, features});
    out += features;
  }
}

void BatchLoader::inputs(DrawnSamples samples, int32_t* out) const {
  require(input_.dtype == DType::i32, "inputs are not i32");
  copy_rows(as<int32_t>(inputs_), dataset_.inputs.step(), samples.rows(), elements(input_), out);
}

void BatchLoader::targets(DrawnSamples samples, float* out, const AugmentSeed& augment_seed) const {
  require(target_.dtype == DType::f32, "targets are not f32");
  if (target_is_input_) return inputs(samples, out, augment_seed);
  if (moves_targets()) return draw_targets(samples, augment_seed, out);
  const size_t features = elements(target_);
  if (of_class_.empty()) {
    in_blocks(samples.rows(), [&](std::span<const int64_t> block) {
      gathers_.f32(as<float>(targets_), block.data(), block.size(), features, out);
      out += block.size() * features;
    });
    return;
  }
  const auto* labels = as<int32_t>(targets_);
  const auto of_row = [&](uint32_t row) {
    return std::span(of_class_).subspan(static_cast<size_t>(labels[row]) * features, features);
  };
  for (size_t i = 0; i < samples.size(); ++i, out += features) {
    const DrawnSample sample = samples[i];
    std::ranges::copy(of_row(sample.row), out);
    if (mixes())
      mix_targets(mix_of(sample, augment_seed), of_row(partner(sample, augment_seed)),
                  {out, features});
  }
}

void BatchLoader::targets(DrawnSamples samples, int32_t* out,
                          const AugmentSeed& augment_seed) const {
  require(target_.dtype == DType::i32, "targets are not i32");
  if (moves_targets()) return draw_targets(samples, augment_seed, out);
  copy_rows(as<int32_t>(targets_), target_step_, samples.rows(), elements(target_), out);
}

std::string BatchLoader::not_stored() const {
  if (dataset_.reader) return "samples are read on the way";
  if (random_.changes_colors() || mixes())
    return "color_jitter, mixup and cutmix are computed there";
  return "";
}

BatchLoader::Stored BatchLoader::stored_inputs() const {
  require(not_stored().empty(), "inputs as they lie in memory");
  const Table& table = dataset_.inputs;
  const DType type = bytes_.empty() ? input_.dtype : DType::u8;
  return {.sample = {type, table.sample()},
          .bytes = {inputs_.get(), static_cast<size_t>(table.stored()) * size_of(type)},
          .step = table.step(),
          .values = bytes_.values(),
          .changes = random_.changes(),
          .colours = random_.colours()};
}

BatchLoader::Stored BatchLoader::stored_targets() const {
  if (target_is_input_) return stored_inputs();
  TensorDesc sample =
      of_class_.empty() ? target_ : TensorDesc{DType::i32, dataset_.targets.sample()};
  if (moves_targets()) sample.shape = target_image_;
  const int64_t count = size() > 0 ? (size() - 1) * target_step_ + sample.shape.elements() : 0;
  return {.sample = sample,
          .bytes = {targets_.get(), static_cast<size_t>(count) * size_of(sample.dtype)},
          .step = target_step_,
          .values = of_class_,
          .changes = moves_,
          .colours = target_fills_};
}

}  // namespace dpt
