// What follows the backward pass on one GPU, and the memory that it is about: weights, gradients
// and the optimizer's states lie flat, as the session's layout says.
#pragma once

#include <cstddef>

#include "backend/cuda/context.h"
#include "graph/optimizer_step.h"
#include "train/buffers.h"
#include "train/device_flights.h"
#include "train/session.h"

namespace dpt {

class DeviceUpdate {
 public:
  // REQUIRES: context and flights outlive it.
  DeviceUpdate(const Session& session, cuda::DeviceContext& context, const DeviceFlights& flights);

  std::byte* weights() const { return weights_.data(); }
  // Where the gradients of a micro-batch go: those of a later one are added to the first one's.
  std::byte* gradients(bool later) const { return later ? more_.data() : gradients_.data(); }

  void upload(const Buffers& buffers);    // the host's weights and states; waits
  void download(const Buffers& buffers);  // back; waits

  // Each enqueues. After a micro-batch's backward part: keeps its loss, and adds its gradients.
  void add(size_t micro, const std::byte* loss);
  // After all of them: whether the gradients are used, and how; then the optimizer. step: of the
  // launch.
  void judge(size_t step, size_t micro_batches);
  void update();

  static size_t state_bytes(const Session& session);  // of all states

 private:
  template <class Combine>
  void sum_powers(Combine combine, double norm_type);

  const Session& session_;
  cuda::DeviceContext& context_;
  const DeviceFlights& flights_;
  OptimizerStep kind_;  // which optimizer, whatever its numbers
  cuda::Memory weights_, gradients_, more_, states_;
  cuda::Memory losses_, power_;  // what is judged: of each micro-batch; of the gradients
};

}  // namespace dpt
