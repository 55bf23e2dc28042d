// Where the sums of squares lie that `log.grad_norms` and `log.noise_scale` take of the gradients,
// in Buffers::measures(). Each is the sum over one chunk of kSquareChunk elements: chunks are
// fixed, so the bits do not depend on which worker computes which chunk.
#pragma once

#include <cstddef>
#include <vector>

#include "session/compiled_model.h"
#include "session/devices.h"

namespace dpt {

class MeasureLayout {
 public:
  MeasureLayout() = default;  // nothing is measured
  MeasureLayout(const Spec& spec, const Devices& devices, const CompiledModel& model);

  // Number of sums; 0 if nothing is measured.
  size_t elements() const { return rows_ * chunks_ + parameter_chunks_; }

  // With `log.noise_scale`: sums over the stored gradients of each shard, one row per shard, and a
  // last row for the sum over shards.
  bool by_shard() const { return rows_ > 0; }
  size_t chunks() const { return chunks_; }                   // of a row
  size_t row(size_t shard) const { return shard * chunks_; }  // index of its first sum

  // With `log.grad_norms`: sums over the gradient of each parameter. Chunks begin with the
  // parameter.
  struct Parameter {
    size_t parameter = 0;             // index in Graph::parameters
    size_t offset = 0, elements = 0;  // in the flat buffers
    size_t first = 0, chunks = 0;     // index of its first sum, number of sums
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  size_t parameter_chunks() const { return parameter_chunks_; }

 private:
  size_t rows_ = 0, chunks_ = 0, parameter_chunks_ = 0;
  std::vector<Parameter> parameters_;
};

}  // namespace dpt
