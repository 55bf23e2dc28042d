#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {
namespace {

constexpr size_t kRows = 40, kGuard = 20;
const std::vector<int64_t> kIndex = {3, 39, 0, 3, 17, 38, 5};
constexpr size_t kFeatures[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 784};

// rows[index[r], f] for all r, then f(value); behind it room that no kernel may touch.
template <class T, class F>
std::vector<float> expected(const std::vector<T>& rows, size_t features, F f) {
  std::vector<float> x;
  for (const int64_t row : kIndex)
    for (size_t i = 0; i < features; ++i)
      x.push_back(f(rows[static_cast<size_t>(row) * features + i]));
  x.resize(x.size() + kGuard, -7);
  return x;
}

TEST_CASE("rows are gathered and converted with the bits of the plain formula") {
  std::vector<float> table(256);  // ToTensor, then divide by 255: two divisions
  for (size_t b = 0; b < 256; ++b) table[b] = static_cast<float>(b) / 255.0F / 255.0F;
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const size_t features : kFeatures) {
      CAPTURE(kernels->name);
      CAPTURE(features);
      std::vector<uint8_t> rows(kRows * features);
      for (size_t i = 0; i < rows.size(); ++i)
        rows[i] = static_cast<uint8_t>((i * 37 + i / 256) % 256);
      std::vector<float> x(kIndex.size() * features + kGuard, -7);
      const float scale = 1.0F / 255, shift = -0.37F;
      kernels->gather_u8(rows.data(), kIndex.data(), kIndex.size(), features, scale, shift,
                         x.data());
      CHECK(x == expected(rows, features,
                          [&](uint8_t b) { return static_cast<float>(b) * scale + shift; }));
      kernels->gather_u8_table(rows.data(), kIndex.data(), kIndex.size(), features, table.data(),
                               x.data());
      CHECK(x == expected(rows, features, [&](uint8_t b) { return table[b]; }));

      const std::vector<float> floats = Numbers(features).reals(kRows * features);
      kernels->gather_f32(floats.data(), kIndex.data(), kIndex.size(), features, x.data());
      CHECK(x == expected(floats, features, [](float v) { return v; }));
    }
}

}  // namespace
}  // namespace dpt
