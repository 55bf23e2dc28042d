// Copies between images; the source index is looked up separately along each axis.
#pragma once

#include <array>
#include <vector>

#include "graph/operators/images/image.h"

namespace dpt::operators {

// For each extent, the index in x of each index in y.
using Sources = std::array<std::vector<int64_t>, 3>;

// Calls f(offset in x, offset in y) for each element of y.
template <class F>
void each_copy(const Image& x, const Image& y, const Sources& from, F f) {
  const size_t x_step = x.column_step(), y_step = y.column_step();
  y.each_row([&](int64_t n, int64_t c, const Extents& p) {
    const size_t x_row = x.at(
                     n, c,
                     {from[0][static_cast<size_t>(p[0])], from[1][static_cast<size_t>(p[1])], 0}),
                 y_row = y.at(n, c, p);
    for (size_t i = 0; i < from[2].size(); ++i)
      f(x_row + static_cast<size_t>(from[2][i]) * x_step, y_row + i * y_step);
  });
}

inline void copy_elements(const KernelArgs& args, const Sources& from) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    each_copy(Image(args.in[0]), Image(args.out[0]), from,
              [&](size_t i, size_t k) { y[k] = x[i]; });
  });
}

// dx = the sums of dy over the copies of each element.
inline void sum_copies(const KernelArgs& args, const Sources& from) {
  with_type_of(args.in[0], [&]<class T>(T) {
    sum_elements<T, true>(
        args,
        [&](const Image& x, const Image& y, auto f) {
          each_copy(x, y, from, [&](size_t i, size_t k) { f(i, k, 1); });
        },
        [](double dy, double) { return dy; });
  });
}

}  // namespace dpt::operators
