// The optimizer update on one GPU, and the flat memory that it works on: weights, gradients and
// optimizer states, in the order of the session's layout and restricted to this GPU's share.
// Element indices count from the start of the share.
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

class GpuUpdate {
 public:
  // REQUIRES: all references outlive it.
  GpuUpdate(const Session& session, int replica, const GpuShare& share,
            cuda::DeviceContext& context, const LaunchQueue& launch_queue);

  std::byte* weights() const { return weights_.data(); }
  // The buffer that a micro-batch writes its gradients to. `later` micro-batches have a second
  // buffer, which is added to the first.
  std::byte* gradients(bool later) const { return later ? more_.data() : gradients_.data(); }

  void upload(const Buffers& buffers);  // copies the host's weights and states to the GPU; waits
  // Copy back to the host and wait. Weights: only on the first replica of each host. States: on the
  // first replica of all, or with `shard: optimizer` on every replica for its own pieces.
  void download_weights(const Buffers& buffers);
  void download_states(const Buffers& buffers);
  // Copy elements [begin, end) of the weights to or from the host's flat buffers, and wait. flat:
  // element 0 of the flat buffers.
  void read(size_t begin, size_t end, float* flat);
  void write(size_t begin, size_t end, const float* flat);
  // True if the host's flat buffers have the same bits in elements [begin, end); waits.
  bool equal(size_t begin, size_t end, const float* flat);

  // The sum over all micro-batches and, after the exchange, over all GPUs.
  float* gradient() const { return reinterpret_cast<float*>(gradients_.data()); }
  size_t gradient_bytes() const { return share_.trained() * sizeof(float); }
  // [2 * losses_of_step()]: the losses, then those of the first rank alone; with several hosts its
  // LaunchDecisions follow.
  double* losses() const { return reinterpret_cast<double*>(losses_.data()); }
  // One per micro-batch; if one GPU computes the loss of all replicas, one per micro-batch and
  // shard.
  static size_t losses_of_step(const Devices& devices, const SessionBatches& batches);

  // Each call enqueues. Stores a loss. loss: null: no rows, or another GPU computes it; stores 0.
  void keep_loss(size_t index, const std::byte* loss);
  // Elements [begin, end): adds a later micro-batch's gradients to the sum of those before, or sets
  // the sum to 0.
  void add_gradients(size_t begin, size_t end);
  void no_gradients(size_t begin, size_t end);
  // Rounds the gradients to the type of `compress` if there is no other GPU to exchange them with.
  void round_gradients();
  // Computes the norm partial of this GPU's gradients, if looks(). It is stored in
  // device_norm_partials() [devices of a replica]. With `shard: optimizer` it is first stored in
  // norm_partials() [replicas], whose other elements are 0; when these are summed over replicas,
  // join_pieces() combines them into device_norm_partials().
  void measure();
  void join_pieces();
  bool looks() const {
    return session_.settings.spec.clip.max_norm.has_value() || session_.precision.scaler.on;
  }
  double* norm_partials() const { return reinterpret_cast<double*>(norm_partials_.data()); }
  double* device_norm_partials() const {
    return norm_partials() + (all_states() ? 0 : session_.devices.topology.replicas());
  }
  // When all device_norm_partials() are present: judge() decides whether the gradients are used and
  // how they are scaled; update() runs the optimizer. step: index in the launch. loss: address of
  // the step's only loss; null: the losses were kept by keep_loss().
  void decide_update(size_t step, const std::byte* loss);
  void update();
  void update_average(int half);  // half: see cuda::UpdateBuffers
  // With averages: enqueues the exchange of the weights of this GPU's pieces with their averages.
  void swap_average();

  // Bytes of all optimizer states of one GPU.
  static size_t state_bytes(const RunSettings& settings, const Devices& devices,
                            const CompiledModel& model, const GpuShare& share);

 private:
  // Elements [begin, end) of the share, updated by one launch: those of a parameter group that lie
  // together in a piece. state: the first one's index in a state.
  struct Run {
    size_t begin = 0, end = 0, state = 0;
    int group = 0;
  };
  std::vector<Run> runs_of_groups() const;
  bool all_states() const { return !session_.devices.exchange.shard_states; }
  double norm_type() const;  // 0: the maximum norm
  template <class F>
  void with_combine(F f) const;
  void combine(const double* norm_partials, int count, double* to) const;
  // Copies through pinned memory, one piece at a time. Calls f(first element in the flat buffers,
  // its elements in the host's memory, count) before the upload, or after the download.
  template <class F>
  void upload(float* to, size_t begin, size_t end, F f);
  template <class F>
  void download(const float* from, size_t begin, size_t end, F f);
  template <class F>
  void each_state(F f) const;
  float* state_of(size_t buffer, size_t before) const {
    return reinterpret_cast<float*>(states_.data()) + buffer * elements_ + before;
  }

  const Session& session_;
  const GpuShare& share_;
  cuda::DeviceContext& context_;
  const LaunchQueue& launch_queue_;
  OptimizerStep kind_;  // selects the optimizer; its numbers are not used
  cuda::DeviceBuffer weights_, gradients_, more_, states_;
  std::vector<Bucket> pieces_;  // that this GPU updates; its states have only these, without gaps
  size_t elements_ = 0;         // of one state
  std::vector<Run> runs_;
  int replica_;
  bool first_of_host_;       // of the replicas
  cuda::DeviceBuffer host_;  // pinned
  // Losses of the micro-batches, the norm partials, and their total in a replica.
  cuda::DeviceBuffer losses_, norm_partials_, norm_total_;
};

}  // namespace dpt
