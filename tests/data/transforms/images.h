// Images through a BatchLoader with one random transform.
#pragma once

#include <numeric>

#include "applied.h"
#include "data/batch_loader.h"
#include "data/tables.h"

namespace dpt {

// `samples` images [channels, height, width], all alike: channel c counts up from 100 * c + 1.
inline Dataset counting_images(int64_t samples, const Shape& image) {
  NewTable inputs({DType::u8, {samples, image[0], image[1], image[2]}}),
      targets({DType::i32, {samples}});
  const auto inner = static_cast<size_t>(image[1] * image[2]);
  const std::span<uint8_t> x = inputs.as<uint8_t>();
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<uint8_t>(1 + i % inner + 100 * (i / inner % static_cast<size_t>(image[0])));
  std::ranges::fill(targets.as<int32_t>(), 0);
  Dataset d;
  d.inputs = std::move(inputs).done();
  d.targets = std::move(targets).done();
  d.classes = 1;
  return d;
}

inline Choice transform_of(const std::string& name, const std::string& yaml) {
  const TransformType& t = transform_type(name);
  return {&t, settings_of(t, yaml), {}};
}

inline std::vector<std::vector<float>> transformed(const BatchLoader& loader,
                                                   const AugmentSeed& augment_seed = {}) {
  const auto features = static_cast<size_t>(loader.input().shape.elements());
  std::vector<uint32_t> rows(static_cast<size_t>(loader.size()));
  std::iota(rows.begin(), rows.end(), 0U);
  std::vector<float> all(rows.size() * features);
  loader.inputs(rows, all.data(), augment_seed);
  std::vector<std::vector<float>> out;
  for (size_t r = 0; r < rows.size(); ++r)
    out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(r * features),
                     all.begin() + static_cast<std::ptrdiff_t>((r + 1) * features));
  return out;
}

// What refuses the transform, or nothing.
inline std::string refusal(const std::string& name, const std::string& yaml, const Shape& image) {
  try {
    const std::vector<Choice> list = {transform_of(name, yaml)};
    const BatchLoader loader(counting_images(1, image), list, {});
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::spec);
    return e.what();
  }
  return "";
}

}  // namespace dpt
