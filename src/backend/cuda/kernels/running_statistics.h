// Running statistics of batch normalization. Formulas: graph/operators/norms/batch_norm.cpp.
#pragma once

#include <math.h>

#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"
#include "backend/cuda/kernels/step_state.h"

namespace dpt::cuda {

// Mean and biased variance of channel c from sums [2 C + 1].
struct MeanAndVariance {
  double mean, variance;
};
DPT_FORMULA MeanAndVariance moments_of(const double* sums, int64_t channels, int64_t c) {
  const double n = sums[2 * channels], mean = sums[c] / n;
  const double variance = sums[channels + c] / n - mean * mean;
  return {mean, variance > 0 ? variance : 0};
}

struct RunningMoments {
  const float *mean, *variance;
  double* out;
  double eps;
  int64_t channels;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(mean, count);
    v.reads(variance, count);
    v.writes(out, 2 * count);
  }
  DPT_HOST_DEVICE void operator()(int64_t c) const {
    out[c] = static_cast<double>(mean[c]);
    out[channels + c] = 1 / ::sqrt(static_cast<double>(variance[c]) + eps);
  }
};

// Moves the running statistics by the moments of a batch. The results may be in the memory of the
// inputs. Count: 1 block, since all channels read the batch count before one thread increments it.
struct UpdateRunning {
  static constexpr int kThreads = 256;
  const double* sums;
  const float *mean, *variance;
  const int64_t* batches;
  float *new_mean, *new_variance;
  int64_t* new_batches;
  double momentum;  // < 0: cumulative average
  int64_t channels;
  struct Shared {
    int64_t seen;
  };
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(sums, 2 * channels + 1);
    v.reads(mean, channels);
    v.reads(variance, channels);
    v.reads(batches, 1);
    v.writes(new_mean, channels);
    v.writes(new_variance, channels);
    v.writes(new_batches, 1);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    block.phase([&](int t, Shared& s) {
      if (t == 0) s.seen = *batches + 1;
    });
    block.phase([&](int t, Shared& s) {
      for (int64_t c = t; c < channels; c += kThreads) move(c, s.seen, false);
      if (t == 0) *new_batches = s.seen;
    });
  }
  // Updates one channel with the batch's mean and its variance, biased or not.
  DPT_HOST_DEVICE void move(int64_t c, int64_t seen, bool biased) const {
    const double part = momentum < 0 ? 1 / static_cast<double>(seen) : momentum;
    const double n = sums[2 * channels];
    const MeanAndVariance m = moments_of(sums, channels, c);
    const double before = static_cast<double>(variance[c]);
    const double unbiased = n > 1 ? m.variance * n / (n - 1) : before;
    put(new_mean[c], (1 - part) * static_cast<double>(mean[c]) + part * m.mean);
    put(new_variance[c], (1 - part) * before + part * (biased ? m.variance : unbiased));
  }
};

// The same for a batch that is processed in chunks: the sums are accumulated, and with the last
// chunk the running statistics move by the biased variance, as in torchgpipe's DeferredBatchNorm.
// Count: 1 block.
struct DeferRunning {
  static constexpr int kThreads = UpdateRunning::kThreads;
  UpdateRunning batch;           // its `sums` is `gathered`
  const double *chunk, *before;  // [2 C + 1]
  double* gathered;
  const StepState* state;
  using Shared = UpdateRunning::Shared;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(chunk, 2 * batch.channels + 1);
    v.reads(before, 2 * batch.channels + 1);
    v.writes(gathered, 2 * batch.channels + 1);
    v.reads(state, 1);
    batch.touches(v, count);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t channels = batch.channels, sums = 2 * channels + 1;
    const bool last = state->last_chunk != 0;
    block.phase([&](int t, Shared& s) {
      for (int64_t i = t; i < sums; i += kThreads) gathered[i] = before[i] + chunk[i];
      if (t == 0) s.seen = *batch.batches + (last ? 1 : 0);
    });
    block.phase([&](int t, Shared& s) {
      for (int64_t c = t; c < channels; c += kThreads) {
        if (last) {
          batch.move(c, s.seen, true);
        } else {
          batch.new_mean[c] = batch.mean[c];
          batch.new_variance[c] = batch.variance[c];
        }
      }
      if (t == 0) *batch.new_batches = s.seen;
    });
    block.phase([&](int t, Shared&) {
      for (int64_t i = t; last && i < sums; i += kThreads) gathered[i] = 0;
    });
  }
};

}  // namespace dpt::cuda
