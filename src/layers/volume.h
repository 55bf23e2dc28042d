// Operators on images, applied to volumes [N, C, D, H, W]: to each plane of a volume, or along its
// depth.
#pragma once

#include "graph/attrs.h"
#include "graph/builder.h"

namespace dpt::layers {

// The planes of a volume as images [N D, C, H, W].
inline ValueId planes_of(GraphBuilder& g, ValueId volume) {
  return g.apply("unfold_depth", {volume}, DepthWindow{});
}

// Whether a window takes each element by itself, so that pooling by it changes nothing.
inline bool takes_each(Window w) {
  w.dilation = {1, 1};
  return w == Window{};
}

// Images [N D, C, H, W] as volumes of `samples` samples N.
inline ValueId volume_of(GraphBuilder& g, ValueId planes, int64_t samples) {
  return g.apply("fold_depth", {planes},
                 DepthWindow{.samples = samples, .extent = g.shape(planes)[0] / samples});
}

// f: ValueId -> ValueId, adds operators on images [N D, C, H, W].
template <class F>
ValueId on_planes(GraphBuilder& g, ValueId volume, F f) {
  const int64_t samples = g.shape(volume)[0];
  return volume_of(g, f(planes_of(g, volume)), samples);
}

// f: ValueId -> ValueId, adds operators on images [N, C, D, H W], whose width they keep.
template <class F>
ValueId along_depth(GraphBuilder& g, ValueId volume, F f) {
  const Shape x = g.shape(volume);
  const ValueId columns =
      g.apply("reshape", {volume}, Reshape{{x[0], x[1], x[2], x.tail(3).elements()}});
  const ValueId y = f(columns);
  return g.apply("reshape", {y}, Reshape{x.with(2, g.shape(y)[2])});
}

}  // namespace dpt::layers
