// The hand-written kernels for one CPU core, as plain functions on pointers. The best instruction
// set of the machine is selected at run time.
//
// Rules: All arrays are f32, row-major and dense, in PyTorch's layouts; weights are [O, I].
// Pointers need no alignment, and alignment does not change results: the order of every sum only
// depends on the shapes and the instruction set. Output arrays do not overlap others. Sizes may be
// 0.
// Thread: any. A call runs on the calling thread only and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dpt {

enum class Isa { baseline, avx2, avx512 };

// An update of one range of the flat buffers of weights and optimizer states, from the gradients of
// all shards. For i in [begin, end): g = the sum over s of shards[s][i - first] in the order of
// comm/tree.h, times grad_scale, clamped to +-clip_value. g is stored to sum_out[i - first]:
// PyTorch's .grad. Then the optimizer's formula is applied to weight[i], state[...][i] and g.
struct UpdateArgs {
  float* weight = nullptr;
  float* state[3] = {};  // in the order of the formula's comment; unused ones may be null
  const float* const* shards = nullptr;
  int shard_count = 0;       // >= 1
  size_t first = 0;          // index in the flat buffers at which shards and sum_out begin
  float* sum_out = nullptr;  // may be null; may be one of the shards
  float grad_scale = 1;
  float clip_value = 0;  // 0: no clamping
  size_t begin = 0, end = 0;
};

constexpr size_t kSquareChunk = 4096;  // elements of one partial sum of sum_squares

struct SimdKernels {
  const char* name;  // "avx512", "avx2", "baseline"
  Isa isa;

  // y [n, out] = x [n, in] w [out, in]^T + bias [out]; bias may be null. The order of sums is
  // chosen for usual_n rows, so the bits of a row do not depend on n.
  void (*linear)(const float* x, const float* w, const float* bias, float* y, size_t n, size_t out,
                 size_t in, size_t usual_n);
  // y [n, out] = x [n, in] w [in, out] + bias [out]; bias may be null. Zeros of x may be skipped,
  // so a non-finite w does not always give nan.
  void (*matmul)(const float* x, const float* w, const float* bias, float* y, size_t n, size_t out,
                 size_t in);
  // dw [out, in] = dy [n, out]^T x [n, in]. stride: distance of the rows of dy. Zeros of dy may be
  // skipped. Each element is one chain over n. continued: continues the chains that dw holds, so
  // several calls give the bits of one call with all their rows.
  void (*linear_weight_gradient)(const float* dy, size_t stride, const float* x, float* dw,
                                 size_t n, size_t out, size_t in, bool continued);
  // db [out] = the sum of the rows of dy [n, out].
  void (*sum_rows)(const float* dy, float* db, size_t n, size_t out);

  // to[i] = the sum over s of shards[s][i] for i in [begin, end), in the order of comm/tree.h, but
  // without changing the shards. `to` may be one of the shards.
  void (*sum_shards_range)(float* to, const float* const* shards, int shard_count, size_t begin,
                           size_t end);

  // See UpdateArgs. The bits are those of the formulas on every instruction set.
  // For each formula of the table of optimizers, in float; called by update() (optimizers.h).
  using Update = void (*)(const UpdateArgs& args, const void* formula);
  const Update* updates;

  // average[i] = lerp(average[i], weight[i], rate) for i < count (graph/formulas/average.h).
  void (*average)(float* average, const float* weight, float rate, size_t count);

  // partial[c] = the sum of squares of chunk c of x [size], in double, for c in [first_chunk,
  // last_chunk). Chunks have kSquareChunk elements. If the partial sums are added in the order of
  // c, the total does not depend on who summed which chunk. The bits are the same on every
  // instruction set.
  void (*sum_squares)(const float* x, size_t size, size_t first_chunk, size_t last_chunk,
                      double* partial);

  // x[r, features] = float(rows[index[r], :]) * scale + shift, rounded after each operation.
  void (*gather_u8)(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                    float scale, float shift, float* x);
  // x[r, features] = table[rows[index[r], :]], with 256 floats: the bits of any sequence of
  // elementwise transforms. gather_u8 is faster if it gives the same bits.
  void (*gather_u8_table)(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                          const float* table, float* x);
  // x[r, features] = rows[index[r], :].
  void (*gather_f32)(const float* rows, const int64_t* index, size_t n, size_t features, float* x);
};

const SimdKernels& simd_kernels();  // the best that this CPU supports
// null: unknown, or not supported by this CPU
const SimdKernels* simd_kernels(std::string_view isa);

}  // namespace dpt
