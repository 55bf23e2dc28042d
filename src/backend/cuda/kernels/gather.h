// The start of a micro-batch, and batches gathered from a data set on the GPU: rows in the epoch's
// order, converted and transformed in one pass (data/batch_loader.h).
#pragma once

#include "backend/cuda/kernels/own_kernel.h"
#include "backend/cuda/kernels/step_state.h"

namespace dpt::cuda {

// Sets the step state that the kernels of a micro-batch read. Count: 1.
struct BeginBatch {
  const StepEntry* entry;
  StepState* state;
  // Offset of the micro-batch's first row from this device's first row in the step.
  int64_t offset;
  int64_t first_sample;    // index of that row in the global batch
  bool last_chunk;         // the last chunk of those that a pipeline processes together
  bool divides;            // use the entry's divisor; else the state already has it
  float *divisor, *scale;  // in the program's memory; null: it has none
  DPT_HOST_DEVICE void operator()(int64_t) const {
    state->step = entry->step;
    state->position = entry->position + offset;
    state->first_sample = first_sample;
    state->last_chunk = last_chunk ? 1 : 0;
    if (divides) state->divisor = entry->divisor;
    if (divisor) *divisor = static_cast<float>(state->divisor);
    if (scale) *scale = static_cast<float>(state->loss_scale);
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(entry, 1);
    v.reads(state, 1);
    v.writes(state, 1);
    if (divisor) v.writes(divisor, 1);
    if (scale) v.writes(scale, 1);
  }
};

// Evaluation: copies the entry of the next batch. Count: 1.
struct NextTestBatch {
  const StepEntry* entries;  // of all batches
  int64_t count;
  const TestSums* done;
  StepEntry* entry;
  DPT_HOST_DEVICE void operator()(int64_t) const { *entry = entries[done->batches]; }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(entries, count);
    v.reads(done, 1);
    v.writes(entry, 1);
  }
};

// Evaluation: adds the results of a batch. Count: 1.
struct AddTestBatch {
  const double *loss, *weight, *correct;  // null: the loss has none
  TestSums* done;
  DPT_HOST_DEVICE void operator()(int64_t) const {
    done->batches += 1;
    done->loss += *loss;
    if (weight) done->weight += *weight;
    if (correct) done->correct += *correct;
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(loss, 1);
    if (weight) v.reads(weight, 1);
    if (correct) v.reads(correct, 1);
    v.reads(done, 1);
    v.writes(done, 1);
  }
};

// The divisor of a loss whose targets have weights: their sum. Count: 1.
struct SumDivisor {
  const double* weights;  // [micro_batches]
  int64_t micro_batches;
  StepState* state;
  DPT_HOST_DEVICE void operator()(int64_t) const {
    double sum = 0;
    for (int64_t m = 0; m < micro_batches; ++m) sum += weights[m];
    state->divisor = sum;
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(weights, micro_batches);
    v.reads(state, 1);
    v.writes(state, 1);
  }
};

// The sample number of row r of the micro-batch.
struct BatchRows {
  const uint32_t* order;  // of the epoch
  const StepState* state;
  int64_t samples;  // of the epoch
  DPT_HOST_DEVICE int64_t operator()(int64_t r) const { return order[state->position + r]; }
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(state, 1);
    v.reads(order, samples);
  }
};

// x[r, e] = table[channel of e, byte e of the row]. A channel has `inner` adjacent elements.
struct GatherBytes {
  BatchRows rows;
  const uint8_t* data;
  const float* table;  // [channels, 256]
  float* x;
  int64_t features, inner, samples, channels;  // channels of the table: 1, or all
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t e = i % features, c = channels == 1 ? 0 : e / inner;
    x[i] = table[c * 256 + data[rows(i / features) * features + e]];
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    rows.touches(v);
    v.reads(data, samples * features);
    v.reads(table, channels * 256);
    v.writes(x, count);
  }
};

// x[r, e] = element e of the row: floats, or classes and tokens. Rows begin `step` elements apart
// and may overlap.
template <class T>
struct GatherRows {
  BatchRows rows;
  const T* data;
  T* x;
  int64_t features, step, samples;
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    x[i] = data[rows(i / features) * step + i % features];
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    rows.touches(v);
    if (samples > 0) v.reads(data, (samples - 1) * step + features);
    v.writes(x, count);
  }
};

// x[r, e] = values[class of the row, e]: the result of the target transforms for that class.
struct GatherOfClass {
  BatchRows rows;
  const int32_t* classes;
  const float* values;
  float* x;
  int64_t features, samples, all_classes;
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    x[i] = values[classes[rows(i / features)] * features + i % features];
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    rows.touches(v);
    v.reads(classes, samples);
    v.reads(values, all_classes * features);
    v.writes(x, count);
  }
};

using GatherKernels = KernelList<BeginBatch, NextTestBatch, AddTestBatch, SumDivisor, GatherBytes,
                                 GatherRows<float>, GatherRows<int32_t>, GatherOfClass>;

}  // namespace dpt::cuda
