// Which elements of the flat buffers lie on one GPU, without gaps: all of them, or the parameters
// and buffers of its stages (graph/graph.h, note [stages]).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "train/session.h"

namespace dpt {

class DeviceShare {
 public:
  DeviceShare(const Session& session, int device);  // in its replica

  // Elements begin..end of the flat weights, which lie here from element `at` on.
  struct Piece {
    size_t begin, end, at;
    size_t count() const { return end - begin; }
  };
  std::span<const Piece> pieces() const { return pieces_; }  // ascending
  size_t elements() const { return elements_; }              // of weights
  // The first so many of these have gradients and states.
  size_t trained() const { return trained_; }
  size_t at(size_t element) const;  // REQUIRES: it lies here

 private:
  std::vector<Piece> pieces_;
  size_t elements_ = 0, trained_ = 0;
};

}  // namespace dpt
