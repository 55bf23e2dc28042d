// The optimizer states of one worker's share of the parameters. With `shard: optimizer` they are
// kept in the worker's own memory instead of the buffers that all ranks share
// (parallel/exchange.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/units.h"
#include "session/update_partition.h"

namespace dpt {

class OwnStates {
 public:
  // Sets every element of all states to `initial`. The index of a piece in `share` is the `piece`
  // argument of state().
  OwnStates(std::span<const UpdatePiece> share, int states, float initial);

  // Elements of one state: the sum over all pieces, each padded to whole cache lines.
  static size_t elements(std::span<const UpdatePiece> share);

  // State `i` of piece number `piece`, as a pointer that is indexed like the flat buffers: only
  // elements [begin, end) of the piece may be accessed.
  float* state(int i, size_t piece) {
    const size_t at = static_cast<size_t>(i) * stride_ + first_[piece];
    return counted_from(reinterpret_cast<float*>(lines_.data()) + at, begin_[piece]);
  }

 private:
  struct alignas(kCacheLine) Line {
    float values[16];
  };
  static constexpr size_t kLine = 16;
  size_t stride_;
  // [pieces] the begin of each in the flat buffers, and its offset in a state.
  std::vector<size_t> begin_, first_;
  std::vector<Line> lines_;
};

}  // namespace dpt
