// The hand-written kernels of one CPU core: plain functions over pointers, the best instruction set
// of this machine chosen at run time.
//
// Everything is f32, row-major and dense, in torch's layouts; weights are [O, I]. No pointer needs
// an alignment, and none changes a result: the order of every sum depends on the shapes alone (and
// on the instruction set). Buffers that are written overlap no others. Sizes may be 0.
// Thread: any; a call uses the caller's core only, and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graph/formulas/optimizer.h"

namespace dpt {

enum class Isa { baseline, avx2, avx512 };

// One range of the flat buffers of weights and optimizer states, and the gradients of all shards.
// For i in [begin, end): g = the sum of shards[s][i - first] in the order of comm/tree.h, times
// grad_scale, limited to +-clip_value; g is stored to sum_out[i - first], what PyTorch would have
// in .grad; then the optimizer's formula is applied to weight[i], state[..][i] and g.
struct UpdateArgs {
  float* weight = nullptr;
  float* state[3] = {};  // in the order of the formula's comment; those it does not use may be null
  const float* const* shards = nullptr;
  int shard_count = 0;       // >= 1
  size_t first = 0;          // of the flat buffers, where shards and sum_out begin
  float* sum_out = nullptr;  // may be null; may be one of the shards
  float grad_scale = 1;
  float clip_value = 0;  // 0: not limited
  size_t begin = 0, end = 0;
};

constexpr size_t kSquareChunk = 4096;  // elements in one partial sum of sum_squares

struct SimdKernels {
  const char* name;  // "avx512", "avx2", "baseline"
  Isa isa;

  // y[n, out] = x[n, in] w[out, in]^T + bias[out]; bias may be null. The order of the sums is
  // chosen for usual_n rows of x, so that the bits of a row don't depend on n.
  void (*linear)(const float* x, const float* w, const float* bias, float* y, size_t n, size_t out,
                 size_t in, size_t usual_n);
  // y[n, out] = x[n, in] w[in, out] + bias[out]; bias may be null. Zeros of x may be left out: they
  // meet no w that is not finite.
  void (*matmul)(const float* x, const float* w, const float* bias, float* y, size_t n, size_t out,
                 size_t in);
  // dw[out, in] = dy[n, out]^T x[n, in], rows of dy `stride` elements apart; zeros of dy may be
  // left out. Each element is one chain over n; continued: goes on with those that dw holds, so
  // that the bits of several calls are those of one with all their rows.
  void (*linear_weight_gradient)(const float* dy, size_t stride, const float* x, float* dw,
                                 size_t n, size_t out, size_t in, bool continued);
  // db[out] = the sum of the rows of dy[n, out].
  void (*sum_rows)(const float* dy, float* db, size_t n, size_t out);

  // to[i] = the sum of shards[s][i] for i in [begin, end), in the order of comm/tree.h, which
  // works in place where this leaves the shards as they are. `to` may be one of the shards.
  void (*sum_shards_range)(float* to, const float* const* shards, int shard_count, size_t begin,
                           size_t end);

  // See UpdateArgs. The formulas' bits, on every instruction set.
  void (*update_sgd)(const UpdateArgs& args, const formula::Sgd<float>& scalars);
  void (*update_adam)(const UpdateArgs& args, const formula::Adam<float>& scalars);
  void (*update_rms_prop)(const UpdateArgs& args, const formula::RmsProp<float>& scalars);
  void (*update_adagrad)(const UpdateArgs& args, const formula::Adagrad<float>& scalars);
  void (*update_adadelta)(const UpdateArgs& args, const formula::Adadelta<float>& scalars);

  // partial[c] = the sum of squares, in double, of chunk c of x[size], chunks of kSquareChunk
  // elements, c in [first_chunk, last_chunk). Add the partial sums in the order of c, and the
  // result does not depend on who summed which chunk. The same bits on every instruction set.
  void (*sum_squares)(const float* x, size_t size, size_t first_chunk, size_t last_chunk,
                      double* partial);

  // x[r, features] = float(rows[index[r], :]) * scale + shift, rounded after each operation.
  void (*gather_u8)(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                    float scale, float shift, float* x);
  // x[r, features] = table[rows[index[r], :]], 256 floats: the bits of any chain of element-wise
  // transforms. Where `table` is float(i) * scale + shift to the bit, gather_u8 is faster.
  void (*gather_u8_table)(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                          const float* table, float* x);
  // x[r, features] = rows[index[r], :]
  void (*gather_f32)(const float* rows, const int64_t* index, size_t n, size_t features, float* x);
};

const SimdKernels& simd_kernels();                      // the best that this CPU runs
const SimdKernels* simd_kernels(std::string_view isa);  // null: unknown, or not on this CPU

}  // namespace dpt
