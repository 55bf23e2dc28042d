// Batches of images with random transforms, gathered from a data set on the GPU. The results have
// the same bits as the CPU's, since both use the formulas of graph/formulas/augment.h.
#pragma once

#include <type_traits>

#include "backend/cuda/kernels/gather.h"
#include "graph/formulas/augment.h"

namespace dpt::cuda {

// Draws the random transform of each row of a batch.
struct MakeFrames {
  BatchRows rows;
  const uint64_t* epoch;
  const uint32_t* repeats;  // [rows.samples] of DrawnSamples, in the epoch's order; null: all 0
  augment::Changes changes;
  int64_t height, width;  // of a stored image
  augment::Frame* frames;
  DPT_HOST_DEVICE void operator()(int64_t r) const {
    augment::make_frame(changes, height, width, rows.state->seed, *epoch,
                        static_cast<uint64_t>(rows(r)),
                        repeats ? repeats[rows.state->position + r] : 0, frames[r]);
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    rows.touches(v);
    v.reads(epoch, 1);
    if (repeats) v.reads(repeats, rows.samples);
    v.writes(frames, count);
  }
};

// x[r, c, y, x] = the pixel that row r's frame shows there. Bytes are converted to table[c, byte];
// others are copied. T: uint8_t, float, or int32_t for a class per pixel.
template <class T>
struct DrawFrames {
  using Value = std::conditional_t<std::is_same_v<T, int32_t>, int32_t, float>;
  BatchRows rows;
  const augment::Frame* frames;
  const T* data;         // [samples, channels, pixels]
  const float* table;    // [table_channels, 256]; null for others
  const float* colours;  // [colour_count, channels]
  Value* x;
  int64_t samples, channels, pixels, table_channels, colour_count;
  int64_t height, width;  // of x
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t column = i % width, y = i / width % height;
    const int64_t c = i / (width * height) % channels, r = i / (width * height * channels);
    const augment::Seen seen = augment::seen(frames[r], y, column);
    if (seen.pixel < 0) {
      x[i] = static_cast<Value>(colours[seen.colour * channels + c]);
      return;
    }
    const T value = data[(rows(r) * channels + c) * pixels + seen.pixel];
    if constexpr (sizeof(T) == 1)
      x[i] = table[(table_channels == 1 ? 0 : c) * 256 + value];
    else
      x[i] = value;
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    rows.touches(v);
    v.reads(frames, count / (height * width * channels));
    v.reads(data, samples * channels * pixels);
    if (table) v.reads(table, table_channels * 256);
    v.reads(colours, colour_count * channels);
    v.writes(x, count);
  }
};

using AugmentKernels =
    KernelList<MakeFrames, DrawFrames<uint8_t>, DrawFrames<float>, DrawFrames<int32_t>>;

}  // namespace dpt::cuda
