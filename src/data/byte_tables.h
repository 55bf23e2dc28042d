// Samples of bytes as floats: element-wise transforms as a table of what each byte becomes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/gather_kernels.h"

namespace dpt {

// The tables of a data set's samples. Channels are the first dimension of a sample. Threads: any
// may call the const functions at the same time.
class ByteTables {
 public:
  ByteTables() = default;  // none: samples are no bytes
  // REQUIRES: the transforms are element-wise; channels > 0.
  ByteTables(std::span<const Choice> transforms, int64_t channels, const GatherKernels& gathers);

  bool empty() const { return tables_.empty(); }
  // Converts `count` adjacent bytes of one channel to x.
  void convert(const uint8_t* bytes, size_t count, int64_t channel, float* x) const;
  // Converts the rows of data[N, features] to x[rows, features]. A channel has features / channels
  // adjacent bytes.
  void gather(const uint8_t* data, std::span<const int64_t> rows, size_t features, float* x) const;
  // All tables, [1 or channels, 256]. One if all channels have the same.
  std::vector<float> values() const;

 private:
  // If `affine`, the table equals v * scale + shift, bit for bit.
  struct ByteMap {
    std::vector<float> table;
    bool affine = false;
    float scale = 1, shift = 0;
  };
  // Arguments as in GatherKernels.
  void convert(const ByteMap& map, const uint8_t* rows, const int64_t* index, size_t n,
               size_t features, float* x) const;

  GatherKernels gathers_{};
  std::vector<ByteMap> tables_;
};

}  // namespace dpt
