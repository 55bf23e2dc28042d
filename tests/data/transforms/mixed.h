// Batches of a loader that mixes samples.
#pragma once

#include <algorithm>
#include <vector>

#include "images.h"

namespace dpt {

// Image n is filled with 10 n, of class n.
inline Dataset filled_images(int64_t samples) {
  Dataset d = counting_images(samples, {3, 4, 4});
  NewTable x({DType::u8, {samples, 3, 4, 4}}), y({DType::i32, {samples}});
  for (size_t i = 0; i < x.as<uint8_t>().size(); ++i)
    x.as<uint8_t>()[i] = static_cast<uint8_t>(10 * (i / 48));
  for (size_t i = 0; i < y.as<int32_t>().size(); ++i) y.as<int32_t>()[i] = static_cast<int32_t>(i);
  d.inputs = std::move(x).done();
  d.targets = std::move(y).done();
  d.classes = samples;
  return d;
}

inline std::vector<float> targets_of(const BatchLoader& loader, const std::vector<uint32_t>& rows,
                                     const AugmentSeed& seed) {
  std::vector<float> out(rows.size() * static_cast<size_t>(loader.target().shape.elements()));
  loader.targets(rows, out.data(), seed);
  return out;
}

// The mean of an image is the mean of its two classes' values by their shares.
inline void check_mixed(const std::string& name, const std::string& yaml) {
  constexpr size_t kImages = 8, kPixels = 48;
  const std::vector<Choice> list = {transform_of(name, yaml)};
  const std::vector<uint32_t> training = {0, 1, 2, 5};
  const BatchLoader loader(filled_images(kImages), list, {}, reference_gathers(), Split::train,
                           training);
  CHECK(loader.mixes());
  CHECK(loader.target() == TensorDesc{DType::f32, {kImages}});
  CHECK_FALSE(loader.not_stored().empty());
  const AugmentSeed seed{3, 1};
  const std::vector<std::vector<float>> images = transformed(loader, seed);
  bool mixed = false;
  for (uint32_t row = 0; row < kImages; ++row) {
    std::vector<float> alone(kPixels);
    loader.inputs(std::vector{row}, alone.data(), seed);
    CHECK(alone == images[row]);
    const std::vector<float> y = targets_of(loader, {row}, seed);
    double sum = 0, mean = 0, expected = 0;
    for (size_t c = 0; c < kImages; ++c) {
      sum += static_cast<double>(y[c]);
      expected += static_cast<double>(y[c]) * 10 * static_cast<double>(c);
      CHECK((y[c] == 0 || c == row || std::ranges::find(training, c) != training.end()));
      mixed = mixed || (y[c] > 0 && y[c] < 1);
    }
    for (const float v : images[row]) mean += static_cast<double>(v) / kPixels;
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));          // a rounding of float32
    CHECK(mean == doctest::Approx(expected).epsilon(1e-5));  // some roundings of float32
  }
  CHECK(mixed);
  CHECK(transformed(loader, {3, 2}) != images);
  // Evaluations have the samples as they are.
  const BatchLoader test(filled_images(kImages), list, {}, reference_gathers(), Split::test);
  CHECK_FALSE(test.mixes());
  CHECK(test.target() == TensorDesc{DType::i32, {}});
  CHECK(test.not_stored().empty());
}

}  // namespace dpt
