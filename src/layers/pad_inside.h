// Padding with copies of an image's own elements, by the words of PyTorch's F.pad.
#pragma once

#include <string_view>
#include <utility>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/builder.h"

namespace dpt::layers {

inline Pad::Mode pad_mode_of(std::string_view word) {
  if (word == "reflect") return Pad::Mode::reflect;
  return word == "replicate" ? Pad::Mode::replicate : Pad::Mode::circular;
}

// Pads x as `pad` says; pad.mode is that of `word`. Throws Error{spec} if x has too few elements.
inline ValueId pad_inside(GraphBuilder& g, ValueId x, std::string_view layer, std::string_view key,
                          std::string_view word, Pad pad) {
  pad.mode = pad_mode_of(word);
  const Shape shape = g.shape(x);
  bool any = false;
  for (int i = 2; i < shape.rank(); ++i)
    for (const int64_t side :
         {pad.before[static_cast<size_t>(i)], pad.behind[static_cast<size_t>(i)]}) {
      any = any || side > 0;
      const bool fits = pad.mode == Pad::Mode::reflect    ? side < shape[i]
                        : pad.mode == Pad::Mode::circular ? side <= shape[i]
                                                          : true;
      if (!fits)
        fail(Fault::spec,
             "{}: {} {} cannot add {} elements to dimension {} of {}, which has {}; use less "
             "padding, or replicate",
             layer, key, word, side, i, shape.str(), shape[i]);
    }
  return any ? g.apply("pad_inside", {x}, pad) : x;
}

// The same for a window's padding, which the window then no longer has.
inline ValueId padded_inside(GraphBuilder& g, ValueId x, std::string_view layer,
                             std::string_view word, Window& w, int dims) {
  Pad pad;
  for (int i = 0; i < dims; ++i) {
    const auto from = static_cast<size_t>(2 - dims + i), to = static_cast<size_t>(2 + i);
    pad.before[to] = std::exchange(w.before[from], 0);
    pad.behind[to] = std::exchange(w.behind[from], 0);
  }
  return pad_inside(g, x, layer, "padding_mode", word, pad);
}

}  // namespace dpt::layers
