// From a data set to the batches of a step: gathers rows, converts and transforms them in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"

namespace dpt {

// The loops that a back end may have faster; the defaults are plain ones with the same bits.
// Rows are `features` elements, x is [n, features]. The signatures are those of SimdKernels.
struct GatherKernels {
  // x[r, i] = float(rows[index[r], i]) * scale + shift, rounded after each operation
  void (*u8)(const uint8_t* rows, const int64_t* index, size_t n, size_t features, float scale,
             float shift, float* x);
  // x[r, i] = table[rows[index[r], i]], 256 floats
  void (*u8_table)(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                   const float* table, float* x);
  // x[r, i] = rows[index[r], i]
  void (*f32)(const float* rows, const int64_t* index, size_t n, size_t features, float* x);
};
GatherKernels plain_gathers();

// Hands out batches of a data set with its transforms applied. Any thread may call the const
// functions at the same time; they take no memory, but where samples have to be read (staged).
// `rows` are numbers of samples, unchecked.
class Feeder {
 public:
  // Throws Error{spec} where a transform does not fit the data.
  // Random transforms are left out where `split` is for evaluation, but for the size of a crop.
  // REQUIRES: the choices name rows of transform_table() and target_transform_table().
  Feeder(Dataset dataset, std::span<const Choice> transforms,
         std::span<const Choice> target_transforms, const GatherKernels& gathers = plain_gathers(),
         Split split = Split::train);

  const Dataset& dataset() const { return dataset_; }
  int64_t size() const { return dataset_.size(); }
  TensorDesc input() const { return input_; }    // of one sample: f32, or i32 for tokens
  TensorDesc target() const { return target_; }  // of one sample: f32, or i32 for classes
  int64_t classes() const { return dataset_.classes; }

  // REQUIRES: `out` has room for rows.size() samples and the type of input() or target().
  // turn: what random transforms are drawn by. staged: the inputs of these rows one after another,
  // of a data set with a reader; null: they are read here and now.
  void inputs(std::span<const uint32_t> rows, float* out, const Turn& turn = {},
              const std::byte* staged = nullptr) const;
  void inputs(std::span<const uint32_t> rows, int32_t* out) const;
  void targets(std::span<const uint32_t> rows, float* out) const;
  void targets(std::span<const uint32_t> rows, int32_t* out) const;

  // The data set as it lies in memory, for a back end that gathers by itself. Lives as long as the
  // Feeder.
  struct Stored {
    TensorDesc sample;  // f32 or i32; u8 or a class, where there are `values`; before `changes`
    std::span<const std::byte> bytes;  // of all samples
    int64_t step;                      // elements between the beginnings of two samples
    // What becomes of them: [1 or channels, 256] of bytes, [classes, elements of target()] of
    // classes. Empty: they are taken as they are.
    std::vector<float> values;
    augment::Changes changes{};  // of images; none: they are taken as they are
    std::vector<float> colours;  // [changes, channels]
  };
  // Why inputs() can't be made so; empty: it can.
  std::string not_stored() const;
  Stored stored_inputs() const;  // REQUIRES: not_stored() is empty
  Stored stored_targets() const;

 private:
  // Bytes to floats, for one channel: a table, which where `affine` is v * scale + shift to the
  // bit.
  struct ByteMap {
    std::vector<float> table;
    bool affine = false;
    float scale = 1, shift = 0;
  };

  void prepare_inputs(std::span<const Choice> transforms);
  std::vector<Choice> take_random(std::span<const Choice> transforms);
  void add_change(std::span<const Choice> transforms, size_t place, int64_t channels, DType from);
  void prepare_maps(std::span<const Choice> transforms, int64_t channels);
  void prepare_targets(std::span<const Choice> transforms);
  // Rows of `features` bytes, as the signatures of GatherKernels.
  void convert(const ByteMap& map, const uint8_t* rows, const int64_t* index, size_t n,
               size_t features, float* x) const;
  // rows: of `base`.
  void gather_bytes(const std::byte* base, std::span<const int64_t> rows, float* out) const;
  // The samples are `numbers`, and lie in `base` one after another where that is `staged`.
  void draw_frames(std::span<const uint32_t> numbers, const Turn& turn, const std::byte* base,
                   bool staged, float* out) const;
  std::shared_ptr<std::byte[]> read(std::span<const uint32_t> rows) const;

  Dataset dataset_;
  GatherKernels gathers_;
  Split split_;
  TensorDesc input_, target_;
  int64_t target_step_ = 0;  // of targets_, between the beginnings of two samples
  augment::Changes random_;
  std::vector<float> colours_;                  // that these paint with, [random_.count, channels]
  std::vector<ByteMap> maps_;                   // one, or one a channel
  std::shared_ptr<const std::byte[]> inputs_;   // of the data set, or f32 ones after transforms
  std::shared_ptr<const std::byte[]> targets_;  // likewise
  std::vector<float>
      of_class_;  // [classes, target]: where target transforms turn classes into values
};

}  // namespace dpt
