// Padding with copies of an image's own elements, by the words of PyTorch's F.pad.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "layers/volume.h"
#include "layers/window.h"

namespace dpt::layers {

inline Pad::Mode pad_mode_of(std::string_view word) {
  if (word == "reflect") return Pad::Mode::reflect;
  return word == "replicate" ? Pad::Mode::replicate : Pad::Mode::circular;
}

// Throws Error{spec} if a dimension of `shape` has too few elements for its padding.
inline void require_enough_inside(const Shape& shape, std::string_view layer, std::string_view key,
                                  std::string_view word, const Pad& pad) {
  for (int i = 2; i < shape.rank(); ++i)
    for (const int64_t side :
         {pad.before[static_cast<size_t>(i)], pad.behind[static_cast<size_t>(i)]}) {
      const bool fits = pad.mode == Pad::Mode::reflect    ? side < shape[i]
                        : pad.mode == Pad::Mode::circular ? side <= shape[i]
                                                          : true;
      if (!fits)
        fail(Fault::spec,
             "{}: {} {} cannot add {} elements to {} of {}, which has {}; use less padding, or "
             "replicate",
             layer, key, word, side, dimension_text(shape, i), shape.str(), shape[i]);
    }
}

// Whether `pad` leaves a value as it is.
inline bool adds_nothing(const Pad& pad) {
  const Pad none;
  return pad.before == none.before && pad.behind == none.behind;
}

// Pads x as `pad` says; pad.mode is that of `word`. Throws Error{spec} if x has too few elements.
inline ValueId pad_inside(GraphBuilder& g, ValueId x, std::string_view layer, std::string_view key,
                          std::string_view word, Pad pad) {
  pad.mode = pad_mode_of(word);
  require_enough_inside(g.shape(x), layer, key, word, pad);
  if (adds_nothing(pad)) return x;
  if (g.shape(x).rank() < 5) return g.apply("pad_inside", {x}, pad);
  const Pad planes{.before = {0, 0, pad.before[3], pad.before[4]},
                   .behind = {0, 0, pad.behind[3], pad.behind[4]},
                   .mode = pad.mode};
  const Pad depth{
      .before = {0, 0, pad.before[2]}, .behind = {0, 0, pad.behind[2]}, .mode = pad.mode};
  if (!adds_nothing(planes))
    x = on_planes(g, x, [&](ValueId v) { return g.apply("pad_inside", {v}, planes); });
  if (adds_nothing(depth)) return x;
  return along_depth(g, x, [&](ValueId v) { return g.apply("pad_inside", {v}, depth); });
}

// The same for the padding of a window, and of one along the depth of volumes; neither has padding
// then.
inline ValueId padded_inside(GraphBuilder& g, ValueId x, std::string_view layer,
                             std::string_view word, Window& w, Window& depth) {
  const int rank = g.shape(x).rank();
  Pad pad;
  const auto take = [&](int dim, Window& window, int at) {
    const auto to = static_cast<size_t>(dim), from = static_cast<size_t>(at);
    pad.before[to] = std::exchange(window.before[from], 0);
    pad.behind[to] = std::exchange(window.behind[from], 0);
  };
  if (rank == 5) take(2, depth, 0);
  for (int dim = std::max(2, rank - 2); dim < rank; ++dim) take(dim, w, 2 - rank + dim);
  return pad_inside(g, x, layer, "padding_mode", word, pad);
}

}  // namespace dpt::layers
