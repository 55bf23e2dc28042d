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
  // Where a micro-batch leaves its gradients: those of a later one are added to the first one's.
  std::byte* gradients(bool later) const { return later ? more_.data() : gradients_.data(); }

  void upload(const Buffers& buffers);    // the host's weights and states; waits
  void download(const Buffers& buffers);  // back; waits
  // Elements [begin, end) of the weights; wait.
  void read(size_t begin, size_t end, float* to);
  void write(size_t begin, size_t end, const float* from);

  // Of all micro-batches, summed over GPUs where there are several.
  float* gradient() const { return reinterpret_cast<float*>(gradients_.data()); }
  size_t gradient_bytes() const { return session_.layout.stored * sizeof(float); }
  // [2 * losses_of_step()]: this GPU's, then those of the first one alone.
  double* losses() const { return reinterpret_cast<double*>(losses_.data()); }
  // One for each micro-batch; where one GPU computes those of all replicas, for each of these.
  static size_t losses_of_step(const Session& session);

  // Each enqueues. A loss; null: there are no rows, or another GPU computes it.
  void keep_loss(size_t which, const std::byte* loss);
  // Adds a later micro-batch's gradients to those before.
  void add_gradients(size_t begin, size_t end);
  void no_gradients();
  // After all of them: whether the gradients are used, and how; then the optimizer. step: of the
  // launch.
  void judge(size_t step);
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
