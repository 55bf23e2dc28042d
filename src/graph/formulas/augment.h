// Random image transforms for CPU and CUDA kernels, with the same bits. They compute which source
// pixel is at each output position, as a function of the seed, the epoch, the sample's number and
// how many times the epoch drew the sample before.
//
// nvcc compiles this file: no fmt, no containers.
#pragma once

#include <variant>

#include <math.h>
#include <stdint.h>

#include "graph/formulas/philox.h"

namespace dpt::augment {

// The stream of random numbers of one transform for one sample.
struct Draw {
  philox::Key key;
  uint64_t epoch, sample;
  uint32_t repeat;
  uint32_t used;
  philox::Words words;
};

// index: index of the transform in the list. repeat: how many times the epoch drew the sample
// before. Keys of transforms differ from those of dropout layers, which count from 0.
DPT_FORMULA Draw draw_of(uint64_t seed, uint64_t epoch, uint64_t sample, uint64_t index,
                         uint32_t repeat = 0) {
  constexpr uint64_t kTransforms = uint64_t{1} << 63;
  return {.key = philox::layer_key(seed, kTransforms + index),
          .epoch = epoch,
          .sample = sample,
          .repeat = repeat,
          .used = 0,
          .words = {}};
}
DPT_FORMULA uint32_t word(Draw& d) {
  if (d.used % 4 == 0) {
    philox::Words counter = philox::sample_counter(d.epoch, d.sample, d.used / 4);
    counter.w[3] ^= d.repeat;  // 0 for epochs and sample numbers below 2^32
    d.words = philox::block(counter, d.key);
  }
  return d.words.w[d.used++ % 4];
}
DPT_FORMULA double uniform(Draw& d) { return static_cast<double>(word(d)) * 0x1p-32; }  // [0, 1)
DPT_FORMULA double uniform(Draw& d, double low, double high) {
  return low + (high - low) * uniform(d);
}
DPT_FORMULA int64_t below(Draw& d, int64_t n) {  // uniform in 0 .. n - 1
  return static_cast<int64_t>(uint64_t{word(d)} * static_cast<uint64_t>(n) >> 32);
}

struct Rect {  // in pixels; bottom and right are exclusive
  int64_t top, left, bottom, right;
};

// A patch of one color: the pixels inside of `rect`, or all pixels outside.
struct Patch {
  Rect rect;
  bool inside;
  int32_t colour;  // number of the transform that painted it
};

// A view of an image through crops and flips, with patches painted on top; later patches cover
// earlier ones. Crops and flips also move the patches painted so far.
struct Frame {
  static constexpr int kMostPatches = 64;
  int64_t image_height, image_width;
  int64_t height, width;
  // Row y is row y + top of the image, or top - y if rows are flipped; columns likewise.
  int64_t top, left;
  bool rows_flipped, columns_flipped;
  int32_t patches;
  Patch patch[kMostPatches];
};

DPT_FORMULA void begin(Frame& f, int64_t height, int64_t width) {
  f.image_height = f.height = height;
  f.image_width = f.width = width;
  f.top = f.left = 0;
  f.rows_flipped = f.columns_flipped = false;
  f.patches = 0;
}

DPT_FORMULA void paint(Frame& f, const Rect& where, int32_t colour) {
  f.patch[f.patches++] = {.rect = where, .inside = true, .colour = colour};
}

// Crops to height x width pixels from (top, left). Pixels outside of the current frame get
// `colour`.
DPT_FORMULA void crop(Frame& f, int64_t top, int64_t left, int64_t height, int64_t width,
                      int32_t colour) {
  for (int32_t p = 0; p < f.patches; ++p) {
    Rect& r = f.patch[p].rect;
    r = {r.top - top, r.left - left, r.bottom - top, r.right - left};
  }
  if (top < 0 || left < 0 || top + height > f.height || left + width > f.width)
    f.patch[f.patches++] = {
        .rect = {-top, -left, f.height - top, f.width - left}, .inside = false, .colour = colour};
  f.top += f.rows_flipped ? -top : top;
  f.left += f.columns_flipped ? -left : left;
  f.height = height;
  f.width = width;
}

// Mirrors top and bottom, or left and right.
DPT_FORMULA void flip(Frame& f, bool rows) {
  for (int32_t p = 0; p < f.patches; ++p) {
    const Rect r = f.patch[p].rect;
    f.patch[p].rect = rows ? Rect{f.height - r.bottom, r.left, f.height - r.top, r.right}
                           : Rect{r.top, f.width - r.right, r.bottom, f.width - r.left};
  }
  int64_t& first = rows ? f.top : f.left;
  bool& flipped = rows ? f.rows_flipped : f.columns_flipped;
  const int64_t last = (rows ? f.height : f.width) - 1;
  first += flipped ? -last : last;
  flipped = !flipped;
}

// The content of (y, x): the index of an image pixel within its channel, or a colour if the index
// is negative.
struct Seen {
  int64_t pixel;
  int32_t colour;
};
DPT_FORMULA Seen seen(const Frame& f, int64_t y, int64_t x) {
  for (int32_t p = f.patches - 1; p >= 0; --p) {
    const Rect& r = f.patch[p].rect;
    const bool inside = y >= r.top && y < r.bottom && x >= r.left && x < r.right;
    if (inside == f.patch[p].inside) return {-1, f.patch[p].colour};
  }
  const int64_t row = f.rows_flipped ? f.top - y : y + f.top;
  return {row * f.image_width + (f.columns_flipped ? f.left - x : x + f.left), 0};
}

// e^x for |x| < 700, with +, * and / only: the exp() of CPU and GPU libraries differ in the last
// bit.
DPT_FORMULA double exp_of(double x) {
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  const double n = ::rint(x / 0.69314718055994530942);
  const double r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= ln 2 / 2
  double sum = 1;
  for (int i = 14; i > 0; --i) sum = 1 + sum * r / i;  // Taylor series, error 1e-18
  return ::ldexp(sum, static_cast<int>(n));
}

// The transforms. draw: null in evaluation, where only crops change the image.

// RandomCrop: a window of height x width at a random position in the padded image. In evaluation,
// the center of the image.
struct Crop {
  int64_t pad_top, pad_left, pad_bottom, pad_right;
  int64_t height, width;  // 0: the image's own size
};
DPT_FORMULA void change(const Crop& c, Draw* draw, int32_t colour, Frame& f) {
  const int64_t height = c.height == 0 ? f.height : c.height;
  const int64_t width = c.width == 0 ? f.width : c.width;
  if (draw == nullptr) {  // torchvision rounds halves to even
    const double top = ::rint(static_cast<double>(f.height - height) / 2);
    const double left = ::rint(static_cast<double>(f.width - width) / 2);
    return crop(f, static_cast<int64_t>(top), static_cast<int64_t>(left), height, width, colour);
  }
  const int64_t rows = f.height + c.pad_top + c.pad_bottom,
                columns = f.width + c.pad_left + c.pad_right;
  const int64_t top = below(*draw, rows - height + 1) - c.pad_top;
  const int64_t left = below(*draw, columns - width + 1) - c.pad_left;
  crop(f, top, left, height, width, colour);
}

struct Flip {
  double p;
  bool rows;  // false: columns
};
DPT_FORMULA void change(const Flip& c, Draw* draw, int32_t, Frame& f) {
  if (draw != nullptr && uniform(*draw) < c.p) flip(f, c.rows);
}

// RandomErasing (Zhong et al., "Random Erasing Data Augmentation", 2017): fills a rectangle whose
// share of the image's area, and whose logarithm of height / width, are uniform in these ranges.
// After ten draws that do not fit, the image stays as it is.
struct Erasing {
  double p, least_area, most_area, least_log_ratio, most_log_ratio;
};
DPT_FORMULA void change(const Erasing& c, Draw* draw, int32_t colour, Frame& f) {
  if (draw == nullptr || uniform(*draw) >= c.p) return;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area =
        static_cast<double>(f.height * f.width) * uniform(*draw, c.least_area, c.most_area);
    const double ratio = exp_of(uniform(*draw, c.least_log_ratio, c.most_log_ratio));
    const auto height = static_cast<int64_t>(::rint(::sqrt(area * ratio)));
    const auto width = static_cast<int64_t>(::rint(::sqrt(area / ratio)));
    if (height >= f.height || width >= f.width) continue;
    const int64_t top = below(*draw, f.height - height + 1);
    const int64_t left = below(*draw, f.width - width + 1);
    return paint(f, {top, left, top + height, left + width}, colour);
  }
}

// DeVries and Taylor, "Improved Regularization of CNNs with Cutout", 2017: fills squares of
// `length` pixels, centered anywhere in the image.
struct Cutout {
  int64_t length, holes;
};
DPT_FORMULA void change(const Cutout& c, Draw* draw, int32_t colour, Frame& f) {
  if (draw == nullptr) return;
  const int64_t half = c.length / 2;
  for (int64_t hole = 0; hole < c.holes; ++hole) {
    const int64_t y = below(*draw, f.height), x = below(*draw, f.width);
    paint(f, {y - half, x - half, y - half + c.length, x - half + c.length}, colour);
  }
}

using Change = std::variant<Crop, Flip, Erasing, Cutout>;

// The transforms of a data set, in order.
struct Changes {
  static constexpr int kMost = 8;  // each paints at most 8 patches
  struct One {
    Change change;
    uint64_t index = 0;  // index in the list of all transforms
  };
  One all[kMost];
  int32_t count = 0;
  bool draws = true;  // false in evaluation
};

template <class C>
DPT_FORMULA void change_if(const Change& c, Draw* draw, int32_t colour, Frame& f) {
  if (const C* own = std::get_if<C>(&c)) change(*own, draw, colour, f);
}

// Computes the frame of one sample for images [channels, height, width]. Transform i paints with
// color i. repeat: how many times the epoch drew the sample before.
DPT_FORMULA void make_frame(const Changes& changes, int64_t height, int64_t width, uint64_t seed,
                            uint64_t epoch, uint64_t sample, uint32_t repeat, Frame& f) {
  begin(f, height, width);
  for (int32_t i = 0; i < changes.count; ++i) {
    const Changes::One& one = changes.all[i];
    Draw drawn = draw_of(seed, epoch, sample, one.index, repeat);
    Draw* const draw = changes.draws ? &drawn : nullptr;
    change_if<Crop>(one.change, draw, i, f);
    change_if<Flip>(one.change, draw, i, f);
    change_if<Erasing>(one.change, draw, i, f);
    change_if<Cutout>(one.change, draw, i, f);
  }
}

}  // namespace dpt::augment
