// Which elements a norm over rows normalizes together, on CPUs and GPUs.
#pragma once

#include <stdint.h>

#include "graph/formulas/formulas.h"

namespace dpt::formula {

// Row r = sample * groups + group has the elements e in [0, width()): `positions` elements of each
// of its channels. A channel has one weight. Without groups of channels a row is one group of a
// sample, and each of its elements is a channel.
struct NormRows {
  int64_t samples, groups, channels, positions;  // channels: of one group
  bool last;                                     // channels_last: the channels of a position adjoin
};

DPT_FORMULA int64_t rows_of(const NormRows& n) { return n.samples * n.groups; }
DPT_FORMULA int64_t width_of(const NormRows& n) { return n.channels * n.positions; }
DPT_FORMULA int64_t weights_of(const NormRows& n) { return n.groups * n.channels; }
DPT_FORMULA int64_t elements_of(const NormRows& n) { return rows_of(n) * width_of(n); }
// The channel of element e of row r, and the index of the element in memory.
DPT_FORMULA int64_t channel_of(const NormRows& n, int64_t r, int64_t e) {
  return r % n.groups * n.channels + (n.last ? e % n.channels : e / n.positions);
}
DPT_FORMULA int64_t index_of(const NormRows& n, int64_t r, int64_t e) {
  if (!n.last) return r * width_of(n) + e;
  return (r / n.groups * n.positions + e / n.channels) * weights_of(n) + channel_of(n, r, e);
}

}  // namespace dpt::formula
