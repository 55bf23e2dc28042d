#include "engine/own_states.h"

#include <algorithm>

namespace dpt {
namespace {

constexpr size_t aligned(size_t elements) { return (elements + 15) / 16 * 16; }

}  // namespace

size_t OwnStates::elements(std::span<const UpdatePiece> share) {
  size_t out = 0;
  for (const UpdatePiece& p : share) out += aligned(p.end - p.begin);
  return out;
}

OwnStates::OwnStates(std::span<const UpdatePiece> share, int states, float initial)
    : stride_(elements(share)) {
  size_t at = 0;
  for (const UpdatePiece& p : share) {
    begin_.push_back(p.begin);
    first_.push_back(at);
    at += aligned(p.end - p.begin);
  }
  lines_.resize(static_cast<size_t>(states) * stride_ / kLine);
  for (Line& line : lines_) std::ranges::fill(line.values, initial);
}

}  // namespace dpt
