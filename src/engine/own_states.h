// The optimizer's states of one worker's share of the parameters, where `shard: optimizer` takes
// them out of what all ranks see (parallel/exchange.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "session/update_share.h"

namespace dpt {

class OwnStates {
 public:
  // initial: of every element. REQUIRES: `share` is in the order in which state() is asked.
  OwnStates(std::span<const UpdatePiece> share, int states, float initial);

  // Elements of all pieces in one state, each piece at a cache line.
  static size_t elements(std::span<const UpdatePiece> share);

  // Where state i of piece number `piece` lies, counted from the begin of the flat buffers: its
  // elements are [begin, end) of the piece.
  float* state(int i, size_t piece) {
    const size_t at = static_cast<size_t>(i) * stride_ + first_[piece];
    return counted_from(reinterpret_cast<float*>(lines_.data()) + at, begin_[piece]);
  }

 private:
  struct alignas(64) Line {
    float values[16];
  };
  static constexpr size_t kLine = 16;
  size_t stride_;
  std::vector<size_t> begin_, first_;  // of each piece: in the flat buffers, and here
  std::vector<Line> lines_;
};

}  // namespace dpt
