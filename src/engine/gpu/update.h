// What follows the backward pass on one GPU, and the memory that it is about: weights, gradients
// and the optimizer's states lie flat, as the session's layout and this GPU's share of it say.
// Elements count from the share's first.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "engine/gpu/launch_queue.h"
#include "graph/optimizer_step.h"
#include "session/buffers.h"
#include "session/gpu_share.h"
#include "session/gradient_buckets.h"
#include "session/session.h"

namespace dpt {

class DeviceUpdate {
 public:
  // REQUIRES: all references outlive it.
  DeviceUpdate(const Session& session, int replica, const DeviceShare& share,
               cuda::DeviceContext& context, const DeviceFlights& flights);

  std::byte* weights() const { return weights_.data(); }
  // Where a micro-batch leaves its gradients: those of a later one are added to the first one's.
  std::byte* gradients(bool later) const { return later ? more_.data() : gradients_.data(); }

  void upload(const Buffers& buffers);  // the host's weights and states; waits
  // Back; wait. Of all replicas' GPUs the first one's weights, and states by who has them.
  void download_weights(const Buffers& buffers);
  void download_states(const Buffers& buffers);
  // Elements [begin, end) of the weights, whose places in the flat buffers are read or written
  // there (`flat`: their first element); wait.
  void read(size_t begin, size_t end, float* flat);
  void write(size_t begin, size_t end, const float* flat);
  // Whether the flat buffers have the same bits there; waits.
  bool equal(size_t begin, size_t end, const float* flat);

  // Of all micro-batches, summed over GPUs where there are several.
  float* gradient() const { return reinterpret_cast<float*>(gradients_.data()); }
  size_t gradient_bytes() const { return share_.trained() * sizeof(float); }
  // [2 * losses_of_step()]: this GPU's, then those of the first one alone.
  double* losses() const { return reinterpret_cast<double*>(losses_.data()); }
  // One for each micro-batch; where one GPU computes those of all replicas, for each of these.
  static size_t losses_of_step(const Session& session);

  // Each enqueues. A loss; null: there are no rows, or another GPU computes it.
  void keep_loss(size_t which, const std::byte* loss);
  // Adds a later micro-batch's gradients to those before.
  void add_gradients(size_t begin, size_t end);
  void no_gradients(size_t begin, size_t end);
  // Rounds them to the half that `compress` asks for, where there is nobody to send them to.
  void round_gradients();
  // After all of them, what their norm is made of, where somebody looks at it: device_powers()
  // [devices of a replica], of which this GPU's is set. With pieces first powers() [replicas], of
  // which this one's is set and others are 0, and, once these are summed over replicas, the other
  // one by join_pieces().
  void measure();
  void join_pieces();
  bool looks() const { return session_.spec.clip.max_norm.has_value() || session_.scaler.on; }
  double* powers() const { return reinterpret_cast<double*>(powers_.data()); }
  double* device_powers() const { return powers() + (all_states() ? 0 : session_.who.replicas()); }
  // Once all device_powers() are there: whether the gradients are used, and how; then the
  // optimizer. step: of the launch. loss: where it lies if it is the step's only one; null: kept
  // above.
  void judge(size_t step, const std::byte* loss);
  void update();

  // Of all states that a GPU keeps.
  static size_t state_bytes(const Session& session, const DeviceShare& share);

 private:
  bool all_states() const { return !session_.exchange.shard_states; }
  double norm_type() const;  // 0: the largest
  template <class F>
  void with_combine(F f) const;
  void combine(const double* powers, int count, double* to) const;
  // Through pinned memory, a piece after the other: f(where the piece begins in the flat buffers,
  // its elements in the host's memory, their number), before or after the copy.
  template <class F>
  void upload(float* to, size_t begin, size_t end, F f);
  template <class F>
  void download(const float* from, size_t begin, size_t end, F f);
  template <class F>
  void each_state(F f) const;

  const Session& session_;
  const DeviceShare& share_;
  cuda::DeviceContext& context_;
  const DeviceFlights& flights_;
  OptimizerStep kind_;  // which optimizer, whatever its numbers
  cuda::Memory weights_, gradients_, more_, states_;
  std::vector<Bucket> pieces_;  // that this GPU updates; states have these alone, without gaps
  size_t elements_ = 0;         // of one state
  int replica_;
  cuda::Memory host_;                     // pinned
  cuda::Memory losses_, powers_, power_;  // what is judged: of each micro-batch; of the gradients
};

}  // namespace dpt
