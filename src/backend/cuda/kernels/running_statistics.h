// Running statistics of batch normalisation. Formulas: graph/operators/norms/batch_norm.cpp.
#pragma once

#include <math.h>

#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"
#include "backend/cuda/kernels/step_state.h"

namespace dpt::cuda {

// Of sums [2 C + 1]: mean and biased variance of channel c.
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

// The results may be the inputs' memory. One block, since all channels read how many batches there
// were before one thread counts this one.
struct UpdateRunning {
  static constexpr int kThreads = 256;
  const double* sums;
  const float *mean, *variance;
  const int64_t* batches;
  float *new_mean, *new_variance;
  int64_t* new_batches;
  double momentum;  // < 0: all batches count the same
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
  // Of one channel, by the batch's variance, biased or not.
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

// The same of a batch that comes in chunks: sums are gathered, and with the last chunk the running
// statistics move. One block.
struct DeferRunning {
  static constexpr int kThreads = UpdateRunning::kThreads;
  UpdateRunning batch;           // whose sums are `gathered`
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
