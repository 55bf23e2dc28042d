#include "base/tensor.h"

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

using Bytes = std::vector<std::byte>;

// Element by element.
Bytes reordered(const Shape& shape, size_t size, Layout from, const Bytes& x, Layout to) {
  const auto read = strides_of(shape, from), write = strides_of(shape, to);
  Bytes y(x.size());
  for (int64_t e = 0; e < shape.elements(); ++e) {
    int64_t rest = e, source = 0, target = 0;
    for (int i = shape.rank(); i-- > 0; rest /= shape[i]) {
      source += rest % shape[i] * read[static_cast<size_t>(i)];
      target += rest % shape[i] * write[static_cast<size_t>(i)];
    }
    std::memcpy(&y[static_cast<size_t>(target) * size], &x[static_cast<size_t>(source) * size],
                size);
  }
  return y;
}

TEST_CASE("copies between layouts move every element to its place, whole or by rows") {
  std::mt19937 random(1);
  const auto below = [&](int n) {
    return static_cast<int64_t>(random() % static_cast<unsigned>(n));
  };
  constexpr Layout kLayouts[] = {Layout::plain, Layout::channels_last, Layout::transposed};
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<int64_t> extents;
    for (int64_t rank = 1 + below(6); rank > 0; --rank) extents.push_back(1 + below(trial % 9 + 2));
    if (trial % 10 == 0) extents = {40 + below(10), 35 + below(10)};
    const Shape shape(extents);
    const size_t size = size_t{1} << below(4);
    CAPTURE(shape.str());
    CAPTURE(size);
    Bytes x(static_cast<size_t>(shape.elements()) * size);
    for (std::byte& b : x) b = static_cast<std::byte>(random());
    const Layout from = kLayouts[below(3)], to = kLayouts[below(3)];
    Bytes y(x.size());
    copy_layout(shape, size, from, x.data(), to, y.data());
    CHECK(y == reordered(shape, size, from, x, to));

    const size_t row = x.size() / static_cast<size_t>(shape[0]);
    const int64_t first = below(static_cast<int>(shape[0]));
    const auto count = static_cast<size_t>(1 + below(static_cast<int>(shape[0] - first)));
    const size_t begin = static_cast<size_t>(first) * row;
    Bytes rows(count * row);
    copy_rows_from(shape, size, from, x.data(), first, rows);
    const Bytes plain = reordered(shape, size, from, x, Layout::plain);
    CHECK(std::memcmp(rows.data(), &plain[begin], rows.size()) == 0);

    Bytes expected = plain;
    for (std::byte& b : rows) b = static_cast<std::byte>(random());
    std::memcpy(&expected[begin], rows.data(), rows.size());
    Bytes z = x;
    copy_rows_to(shape, size, first, rows, from, z.data());
    CHECK(z == reordered(shape, size, Layout::plain, expected, from));
  }
}

}  // namespace
}  // namespace dpt
