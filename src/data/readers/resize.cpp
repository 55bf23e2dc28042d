// The algorithm of Pillow 13's Resample.c, for three bytes per pixel and the triangle filter.
#include <algorithm>
#include <cmath>

#include "data/readers/image.h"

namespace dpt {
namespace {

constexpr int kBits = 32 - 8 - 2;  // fraction bits of the fixed-point weights

// The source pixels of one output pixel: a range with weights in units of 2^-kBits.
struct Window {
  int64_t begin;
  std::vector<int> weights;
};

std::vector<Window> windows(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(1.0, scale);  // half width of the filter
  std::vector<Window> out;
  for (int64_t i = 0; i < to; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * scale;
    const auto begin = std::max<int64_t>(0, static_cast<int64_t>(middle - reach + 0.5));
    const auto end = std::min(from, static_cast<int64_t>(middle + reach + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = begin; x < end; ++x) {
      const double distance = std::abs((static_cast<double>(x) - middle + 0.5) * (1.0 / reach));
      weights.push_back(distance < 1 ? 1 - distance : 0);
      sum += weights.back();
    }
    Window w{begin, {}};
    for (const double weight : weights)
      w.weights.push_back(static_cast<int>(0.5 + weight / sum * (1 << kBits)));
    out.push_back(std::move(w));
  }
  return out;
}

// Resizes lines of pixels. `step` and `line` are the distances between a line's pixels and between
// lines, in bytes of the source and of the result.
struct Lines {
  int64_t count, from_step, from_line, to_step, to_line;
};

void resize_lines(const uint8_t* from, const std::vector<Window>& to, const Lines& lines,
                  uint8_t* out) {
  for (int64_t line = 0; line < lines.count; ++line)
    for (size_t i = 0; i < to.size(); ++i)
      for (int64_t c = 0; c < 3; ++c) {
        int64_t sum = int64_t{1} << (kBits - 1);
        const uint8_t* pixel = from + line * lines.from_line + to[i].begin * lines.from_step + c;
        for (const int weight : to[i].weights) {
          sum += int64_t{*pixel} * weight;
          pixel += lines.from_step;
        }
        out[line * lines.to_line + static_cast<int64_t>(i) * lines.to_step + c] =
            static_cast<uint8_t>(std::clamp<int64_t>(sum >> kBits, 0, 255));
      }
}

Image with_width(const Image& image, int64_t width) {
  if (width == image.width) return image;
  Image out{.height = image.height,
            .width = width,
            .pixels = std::vector<uint8_t>(static_cast<size_t>(image.height * width * 3))};
  resize_lines(image.pixels.data(), windows(image.width, width),
               {.count = image.height,
                .from_step = 3,
                .from_line = image.width * 3,
                .to_step = 3,
                .to_line = width * 3},
               out.pixels.data());
  return out;
}

Image with_height(const Image& image, int64_t height) {
  if (height == image.height) return image;
  const int64_t row = image.width * 3;
  Image out{.height = height,
            .width = image.width,
            .pixels = std::vector<uint8_t>(static_cast<size_t>(height * row))};
  resize_lines(
      image.pixels.data(), windows(image.height, height),
      {.count = image.width, .from_step = row, .from_line = 3, .to_step = row, .to_line = 3},
      out.pixels.data());
  return out;
}

}  // namespace

Image resized(const Image& image, int64_t height, int64_t width) {
  // The order matters, because intermediate results are rounded.
  const int64_t fewer_rows = image.height - height, fewer_columns = image.width - width;
  return fewer_rows > 0 && fewer_rows > 2 * fewer_columns
             ? with_width(with_height(image, height), width)
             : with_height(with_width(image, width), height);
}

}  // namespace dpt
