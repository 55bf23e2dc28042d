// The elements of the flat buffers on one GPU, stored without gaps: all of them, or the parameters
// and buffers of the GPU's stages (graph/graph.h, Note [stages]).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "session/compiled_model.h"
#include "session/devices.h"

namespace dpt {

class GpuShare {
 public:
  // device: index within its replica
  GpuShare(const Devices& devices, const CompiledModel& model, int device);
  int device() const { return device_; }

  // Elements [begin, end) of the flat weights, stored on this GPU from element `at` on.
  struct Piece {
    size_t begin, end, at;
    size_t count() const { return end - begin; }
  };
  std::span<const Piece> pieces() const { return pieces_; }  // ascending
  size_t elements() const { return elements_; }              // of weights
  // The first trained() elements have gradients and states. With `shard: optimizer` this is a
  // multiple of pieces_multiple(), padded at the end with unused elements.
  size_t trained() const { return trained_; }
  bool has(size_t element) const { return piece_of(element) != nullptr; }
  size_t at(size_t element) const;  // REQUIRES: has(element)

  // Calls f(offset in the flat buffers, offset on this GPU, elements) for each run of elements in
  // the range [begin, end) of this GPU.
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
