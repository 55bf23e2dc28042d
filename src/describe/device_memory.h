// The memory that a run takes on each device, and the largest batch that fits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "session/session.h"

namespace dpt {

// Bytes of weights, gradients, optimizer states and activations on each device of a replica; on
// GPUs also what outputs of other GPUs and batches that the host makes take. Libraries' workspaces
// and data sets are not counted.
std::vector<double> device_memory(const Session& session);

struct BatchFit {
  int64_t batch = 0;                // samples per optimizer step; 0: not even the smallest fits
  std::vector<double> memory;       // of each device with this batch
  int64_t next = 0;                 // the smallest that was found not to fit; 0: all fit
  std::vector<double> next_memory;  // empty: no session can be made with it
};

// The largest multiple of `unit` of at most `most` samples with which no device needs more than
// `bytes`, by bisection, as memory grows with the batch. session_of(batch) makes a session, or
// returns null if the spec allows no batch of that size.
BatchFit fit_batch(double bytes, int64_t unit, int64_t most,
                   const std::function<std::unique_ptr<const Session>(int64_t batch)>& session_of);

}  // namespace dpt
