// Makes the batches of a step from a data set: gathers samples, converts and transforms them in one
// pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/byte_tables.h"
#include "data/dataset.h"
#include "data/drawn_samples.h"
#include "data/gather_kernels.h"
#include "data/random_transforms.h"

namespace dpt {

// Gathers batches of a data set and applies its transforms. Threads: any may call the const
// functions at the same time. These do not allocate, unless samples have to be read (staged ==
// nullptr). Sample numbers are not checked.
class BatchLoader {
 public:
  // If `split` is for evaluation, random transforms are omitted, except that a crop still changes
  // the size. training_rows: the samples that others are mixed with; empty: all. Throws Error{spec}
  // if a transform does not fit the data. REQUIRES: the choices are entries of transform_table()
  // and target_transform_table().
  BatchLoader(Dataset dataset, std::span<const Choice> transforms,
              std::span<const Choice> target_transforms,
              const GatherKernels& gathers = reference_gathers(), Split split = Split::train,
              std::vector<uint32_t> training_rows = {});

  const Dataset& dataset() const { return dataset_; }
  int64_t size() const { return dataset_.size(); }
  TensorDesc input() const { return input_; }    // per sample: f32, or i32 for tokens
  TensorDesc target() const { return target_; }  // per sample: f32, or i32 for classes
  int64_t classes() const { return dataset_.classes; }
  // Whether the target of a sample is its input, so that targets() writes what inputs() does.
  bool target_is_input() const { return target_is_input_; }

  // Writes the transformed inputs or targets of `samples`. augment_seed: seed and epoch of random
  // transforms. staged: for data sets with a reader, the samples one after another; null: the
  // reader is called here, as it is for targets that are inputs. If mixes(), each is followed by
  // its partner(). REQUIRES: `out` has room for samples.size() samples, and the element type is
  // that of input() or target().
  void inputs(DrawnSamples samples, float* out, const AugmentSeed& augment_seed = {},
              const std::byte* staged = nullptr) const;
  void inputs(DrawnSamples samples, int32_t* out) const;
  void targets(DrawnSamples samples, float* out, const AugmentSeed& augment_seed = {}) const;
  void targets(DrawnSamples samples, int32_t* out, const AugmentSeed& augment_seed = {}) const;
  // Whether crops and flips move the targets, one value per pixel, as they move the inputs. Padding
  // becomes 0 before the target transforms.
  bool moves_targets() const { return moves_.count > 0; }

  // Whether a sample is another one each time it is drawn.
  bool is_random() const { return random_.any(); }
  // Whether samples are mixed with others, so that classes are probabilities.
  bool mixes() const { return random_.mixes(); }
  // The number of the sample that `sample` is mixed with, which may be its own. The partner is
  // transformed as if the epoch had drawn it as often as `sample`. REQUIRES: mixes().
  uint32_t partner(DrawnSample sample, const AugmentSeed& augment_seed) const;

  // The data set as stored in memory, for a backend that gathers by itself. Valid as long as the
  // BatchLoader.
  struct Stored {
    TensorDesc sample;  // f32 or i32; u8 or a class if there are `values`; before `changes`
    std::span<const std::byte> bytes;  // all samples
    int64_t step;                      // elements between the beginnings of consecutive samples
    // What each stored value becomes: [1 or channels, 256] for bytes, [classes, elements of
    // target()] for classes. Empty: values are used as they are.
    std::vector<float> values;
    augment::Changes changes{};  // random changes of images; none: images are used as they are
    std::vector<float> colours;  // [changes, channels]
  };
  // Whether a backend that gathers by itself draws random changes of images. REQUIRES:
  // not_stored() is empty.
  bool draws_on_device() const { return random_.changes().count > 0 && random_.changes().draws; }
  // Why stored_inputs() is not available; empty if it is.
  std::string not_stored() const;
  Stored stored_inputs() const;  // REQUIRES: not_stored() is empty
  Stored stored_targets() const;

 private:
  void prepare_inputs(std::span<const Choice> transforms, Split split);
  void prepare_targets(std::span<const Choice> transforms);
  void prepare_moves(std::span<const Choice> transforms, std::span<const Choice> target_transforms);
  // Draws the samples' images. If `staged`, they lie at `base` one after another; otherwise `base`
  // is the whole data set.
  void draw_frames(DrawnSamples samples, const AugmentSeed& augment_seed, const std::byte* base,
                   bool staged, float* out) const;
  template <class T>
  void draw_targets(DrawnSamples samples, const AugmentSeed& augment_seed, T* out) const;
  std::shared_ptr<std::byte[]> read(std::span<const uint32_t> rows) const;
  // Samples before they are mixed; base: as for draw_frames().
  void make(DrawnSamples samples, const AugmentSeed& augment_seed, const std::byte* base,
            bool staged, float* out) const;
  MixDraw mix_of(DrawnSample sample, const AugmentSeed& augment_seed) const;

  Dataset dataset_;
  GatherKernels gathers_;
  TensorDesc input_, target_;
  bool target_is_input_ = false;
  int64_t target_step_ = 0;  // elements between the beginnings of consecutive samples of targets_
  RandomTransforms random_;
  augment::Changes moves_;                      // of targets with one value per pixel
  Shape target_image_;                          // these as an image [C, H, W] before moves_
  std::vector<float> target_fills_;             // [moves, C]: the values of padding
  std::vector<uint32_t> training_rows_;         // partners; empty: all samples
  ByteTables bytes_;                            // empty: inputs are no bytes
  std::shared_ptr<const std::byte[]> inputs_;   // the data set's, or f32 after transforms
  std::shared_ptr<const std::byte[]> targets_;  // the same for targets
  std::vector<float> of_class_;  // [classes, target]: if target transforms turn classes into values
};

}  // namespace dpt
