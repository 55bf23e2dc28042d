// Limits what blocks, their parameters and repeats may expand to: otherwise a few lines of a spec
// could demand any amount of memory and time.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "spec/node.h"

namespace dpt {

// Layers (model entries, including those in blocks and repeats), YAML values, and bytes of their
// text.
struct Amount {
  int64_t layers = 0, values = 0, bytes = 0;
  Amount operator-(const Amount& o) const {
    return {.layers = layers - o.layers, .values = values - o.values, .bytes = bytes - o.bytes};
  }
  Amount operator*(int64_t n) const {
    return {.layers = layers * n, .values = values * n, .bytes = bytes * n};
  }
};
inline constexpr Amount kMostExpanded{.layers = 20000, .values = 100000, .bytes = 4 * kMiB};

// The values and bytes of a tree, including its root.
Amount amount_of(const Node& tree);

// Accumulates the size of an expansion while it is made.
class Expansion {
 public:
  // Adds `more`; returns false if the total exceeds kMostExpanded, and reports that once, at
  // `where`. Call it before allocating memory for `more`.
  bool add(const Amount& more, const Span& where, Diagnostics& d);
  bool full() const { return full_; }
  Amount used() const { return used_; }

 private:
  Amount used_;
  bool full_ = false;
};

}  // namespace dpt
