#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "backend/cpu/simd/simd.h"
#include "comm/tree.h"

namespace dpt {
namespace {

using Floats = std::vector<float>;

TEST_CASE("the sum over shards has the bits of the tree and leaves the shards as they are") {
  constexpr size_t kSize = 1700;
  constexpr std::pair<size_t, size_t> kRanges[] = {
      {0, kSize}, {3, 3}, {5, 6}, {16, 1041}, {511, 1699}};
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (int count = 1; count <= 35; ++count) {
      CAPTURE(kernels->name);
      CAPTURE(count);
      Numbers numbers(static_cast<uint64_t>(count));
      std::vector<Floats> shards;
      for (int s = 0; s < count; ++s) shards.push_back(numbers.reals(kSize));
      std::vector<Floats> spoiled = shards;
      std::vector<float*> parts;
      std::vector<const float*> pointers;
      for (Floats& s : spoiled) parts.push_back(s.data());
      for (const Floats& s : shards) pointers.push_back(s.data());
      const std::vector<Floats> before = shards;
      sum_tree(parts, 0, kSize);
      for (const auto& [begin, end] : kRanges) {
        Floats expected(kSize, -7), got = expected;
        std::copy(spoiled[0].begin() + static_cast<std::ptrdiff_t>(begin),
                  spoiled[0].begin() + static_cast<std::ptrdiff_t>(end),
                  expected.begin() + static_cast<std::ptrdiff_t>(begin));
        kernels->sum_shards_range(got.data(), pointers.data(), count, begin, end);
        CHECK(got == expected);
      }
      CHECK(shards == before);
      for (const size_t into : {size_t{0}, shards.size() - 1}) {  // in place
        std::vector<Floats> copy = before;
        std::vector<const float*> from;
        for (const Floats& s : copy) from.push_back(s.data());
        kernels->sum_shards_range(copy[into].data(), from.data(), count, 0, kSize);
        CHECK(copy[into] == spoiled[0]);
      }
    }
}

TEST_CASE("partial sums of squares: the same bits for every owner and instruction set") {
  for (const size_t size : {size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{20000}}) {
    const Floats x = Numbers(size).reals(size);
    const size_t chunks = (size + kSquareChunk - 1) / kSquareChunk;
    std::vector<double> first;
    for (const SimdKernels* kernels : isas_of_this_cpu()) {
      std::vector<double> whole(chunks), split(chunks);
      kernels->sum_squares(x.data(), size, 0, chunks, whole.data());
      for (size_t c = 0; c < chunks; ++c)
        kernels->sum_squares(x.data(), size, c, c + 1, split.data());
      CHECK(split == whole);
      if (first.empty()) first = whole;
      CHECK(whole == first);
      double plain = 0;
      for (const float v : x) plain += static_cast<double>(v) * static_cast<double>(v);
      // 20000 additions in double, in another order
      CHECK(std::accumulate(whole.begin(), whole.end(), 0.0) ==
            doctest::Approx(plain).epsilon(1e-11));
    }
  }
}

}  // namespace
}  // namespace dpt
