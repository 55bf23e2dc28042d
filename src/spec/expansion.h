// How much blocks, their parameters and repeats may make: a few lines of a spec could otherwise ask
// for any amount of memory and time.
#pragma once

#include <cstdint>

#include "spec/node.h"

namespace dpt {

// Layers (entries of a model, with those of blocks and repeats), YAML values, bytes of their texts.
struct Amount {
  int64_t layers = 0, values = 0, bytes = 0;
  Amount operator-(const Amount& o) const {
    return {layers - o.layers, values - o.values, bytes - o.bytes};
  }
  Amount operator*(int64_t n) const { return {layers * n, values * n, bytes * n}; }
};
inline constexpr Amount kMostExpanded{20000, 100000, 4 << 20};

// The values and bytes of a tree, itself included.
Amount amount_of(const Node& tree);

// Counts what is made while it is made.
class Expansion {
 public:
  // False once there is more than kMostExpanded, and the first time with a complaint at `where`.
  // To be called before memory is taken for `more`.
  bool add(const Amount& more, const Span& where, Diagnostics& d);
  bool full() const { return full_; }
  Amount used() const { return used_; }

 private:
  Amount used_;
  bool full_ = false;
};

}  // namespace dpt
