// Padding with copies of an image's own elements, by the words of PyTorch's F.pad.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/builder.h"
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
  return g.apply("pad_inside", {x}, pad);
}

// The same for the padding of a window, which has none then.
inline ValueId padded_inside(GraphBuilder& g, ValueId x, std::string_view layer,
                             std::string_view word, Window& w) {
  const auto first = static_cast<size_t>(5 - g.shape(x).rank());  // of the extents that x has
  Pad pad;
  for (size_t i = first; i < 3; ++i) {
    pad.before[i + 2 - first] = std::exchange(w.before[i], 0);
    pad.behind[i + 2 - first] = std::exchange(w.behind[i], 0);
  }
  return pad_inside(g, x, layer, "padding_mode", word, pad);
}

}  // namespace dpt::layers
