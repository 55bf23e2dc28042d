// Which elements of the flat buffers lie on one GPU, without gaps: all of them, or the parameters
// and buffers of its stages (graph/graph.h, note [stages]).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "session/session.h"

namespace dpt {

class DeviceShare {
 public:
  DeviceShare(const Session& session, int device);  // in its replica
  int device() const { return device_; }

  // Elements begin..end of the flat weights, which lie here from element `at` on.
  struct Piece {
    size_t begin, end, at;
    size_t count() const { return end - begin; }
  };
  std::span<const Piece> pieces() const { return pieces_; }  // ascending
  size_t elements() const { return elements_; }              // of weights
  // The first so many of these have gradients and states; with `shard: optimizer` a multiple of
  // pieces_multiple(), of which the last ones may belong to nothing.
  size_t trained() const { return trained_; }
  bool has(size_t element) const { return piece_of(element) != nullptr; }
  size_t at(size_t element) const;  // REQUIRES: has(element)

  // f(where it begins in the flat buffers, where here, elements), of all here from `begin` to
  // `end`.
  template <class F>
  void each(size_t begin, size_t end, F f) const {
    for (const Piece& p : pieces_) {
      const size_t from = std::max(begin, p.at), to = std::min(end, p.at + p.count());
      if (from < to) f(p.begin + (from - p.at), from, to - from);
    }
  }

 private:
  const Piece* piece_of(size_t element) const;
  void pad_trained(size_t multiple);

  std::vector<Piece> pieces_;
  int device_;
  size_t elements_ = 0, trained_ = 0;
};

}  // namespace dpt
