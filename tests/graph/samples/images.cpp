#include "graph/samples/samples.h"
#include "graph/windows.h"

namespace dpt {
namespace {

struct Resized {
  Shape x, y;
  std::array<double, 3> scale{};
};

// A wide range keeps elements apart, so that a gradient check's differences of 1e-6 do not change
// which one is the largest.
constexpr Sample::Range kApart{-10, 10};

Samples adaptive_pools() {
  Samples out;
  for (const Resized& r : std::vector<Resized>{{{2, 3, 4, 6}, {2, 3, 1, 1}},
                                               {{2, 17, 6, 4}, {2, 17, 3, 2}},
                                               {{1, 2, 7, 5}, {1, 2, 3, 4}},
                                               {{2, 2, 2, 3}, {2, 2, 3, 3}},
                                               {{2, 4, 3, 17}, {2, 4, 2, 2}},
                                               {{2, 3, 7}, {2, 3, 2}},
                                               {{2, 3, 5, 2, 4}, {2, 3, 2, 1, 3}}}) {
    const Resize to{extents_of(r.y)};
    out.push_back(sample("adaptive_avg_pool", {f32(r.x)}, to));
    out.push_back(sample("adaptive_max_pool", {f32(r.x)}, to, {kApart}));
  }
  return out;
}

// Positions in float are rounded by up to 5e-7; differences of neighbors of at most 1 keep what
// that does to results below the tolerances of tests.
Samples upsample() {
  Samples out;
  for (const Resized& r :
       std::vector<Resized>{{{2, 3, 4, 3}, {2, 3, 8, 6}},
                            {{2, 17, 3, 4}, {2, 17, 5, 9}},
                            {{1, 2, 5, 4}, {1, 2, 3, 1}},
                            {.x = {1, 2, 3, 4}, .y = {1, 2, 7, 9}, .scale = {0, 2.5, 2.4}},
                            {{1, 17, 2, 3, 2}, {1, 17, 3, 2, 4}},
                            {.x = {1, 2, 3, 2, 4}, .y = {1, 2, 7, 4, 4}, .scale = {2.5, 2, 1}},
                            {.x = {2, 3, 4}, .y = {2, 3, 12}, .scale = {0, 0, 3}}}) {
    for (const bool exact : {false, true})
      out.push_back(
          sample("upsample_nearest", {f32(r.x)}, Resize{extents_of(r.y), r.scale, false, exact}));
    for (const bool align : {false, true})
      for (const std::string_view op : {"upsample_bilinear", "upsample_bicubic"})
        out.push_back(
            sample(op, {f32(r.x)}, Resize{extents_of(r.y), r.scale, align}, {{-0.5, 0.5}}));
  }
  return out;
}

Samples avg_pool() {
  Samples out;
  const auto add = [&](Shape x, Pool pool) { out.push_back(sample("avg_pool", {f32(x)}, pool)); };
  const Window padded{
      .kernel = {1, 3, 3}, .stride = {1, 2, 2}, .before = {0, 1, 1}, .behind = {0, 1, 1}};
  add({2, 3, 4, 6}, {{.kernel = {1, 2, 2}, .stride = {1, 2, 2}}});
  add({2, 17, 5, 5}, {padded});
  add({2, 3, 6, 5}, {.window = padded, .count_include_pad = false});
  add({2, 3, 6, 5}, {.window = padded, .ceil_mode = true});
  add({1, 2, 6, 5}, {.window = padded, .ceil_mode = true, .count_include_pad = false});
  add({1, 2, 5, 6}, {.window = padded, .divisor_override = 4});
  add({2, 3, 3, 2}, {.window = {.kernel = {1, 4, 4}, .stride = {1, 3, 3}}, .ceil_mode = true});
  add({2, 3, 9},
      {{.kernel = {1, 1, 2}, .stride = {1, 1, 2}, .before = {0, 0, 1}, .behind = {0, 0, 1}}});
  add({2, 17, 4, 3, 5}, {{.kernel = {2, 3, 2}, .stride = {2, 1, 2}}});
  add({2, 3, 1, 4, 4}, {{.kernel = {3, 1, 1}, .before = {1, 0, 0}, .behind = {1, 0, 0}}});
  const Window volume{
      .kernel = {3, 2, 3}, .stride = {2, 1, 2}, .before = {1, 1, 1}, .behind = {1, 1, 1}};
  for (const bool padding : {false, true})
    add({1, 3, 4, 2, 6}, {.window = volume, .ceil_mode = true, .count_include_pad = padding});
  return out;
}

Samples max_pool() {
  Samples out;
  const auto add = [&](Shape x, Pool pool) {
    for (const std::string_view op : {"max_pool", "max_pool_bytes"})
      out.push_back(sample(op, {f32(x)}, pool, {kApart}));
  };
  add({2, 3, 4, 6}, {{.kernel = {1, 2, 2}, .stride = {1, 2, 2}}});
  add({2, 17, 5, 5},
      {{.kernel = {1, 3, 3}, .stride = {1, 2, 2}, .before = {0, 1, 1}, .behind = {0, 1, 1}}});
  add({1, 2, 7, 8}, {{.kernel = {1, 2, 3},
                      .stride = {1, 3, 2},
                      .dilation = {1, 3, 1},
                      .before = {0, 0, 1},
                      .behind = {0, 0, 1}}});
  add({2, 2, 6, 7}, {.window = {.kernel = {1, 3, 2}, .stride = {1, 2, 2}}, .ceil_mode = true});
  add({2, 3, 3, 2}, {.window = {.kernel = {1, 4, 4}, .stride = {1, 3, 3}}, .ceil_mode = true});
  add({2, 3, 9},
      {{.kernel = {1, 1, 2}, .stride = {1, 1, 2}, .before = {0, 0, 1}, .behind = {0, 0, 1}}});
  add({2, 17, 4, 3, 5}, {{.kernel = {2, 3, 2}, .stride = {2, 1, 2}}});
  add({1, 3, 5, 4, 6}, {.window = {.kernel = {2, 2, 3},
                                   .stride = {1, 3, 2},
                                   .dilation = {3, 1, 2},
                                   .before = {1, 0, 1},
                                   .behind = {1, 0, 1}},
                        .ceil_mode = true});
  return out;
}

Samples pad_inside() {
  Samples out;
  for (const auto mode : {Pad::Mode::reflect, Pad::Mode::replicate, Pad::Mode::circular}) {
    const auto add = [&](Shape x, Pad pad) {
      pad.mode = mode;
      out.push_back(sample("pad_inside", {f32(x)}, pad));
    };
    add({2, 3, 4, 5}, {.before = {0, 0, 1, 3}, .behind = {0, 0, 2, 0}});
    add({2, 17, 3, 3}, {.before = {0, 0, 1, 2}, .behind = {0, 0, 1, 2}});
    add({2, 3, 7}, {.before = {0, 0, 2}, .behind = {0, 0, 3}});
    add({1, 3, 3, 2, 4}, {.before = {0, 0, 2, 1, 0}, .behind = {0, 0, 1, 0, 3}});
  }
  return out;
}

}  // namespace

Samples image_samples() {
  Samples out = adaptive_pools();
  out += upsample();
  out += avg_pool();
  out += max_pool();
  return out += pad_inside();
}

}  // namespace dpt
