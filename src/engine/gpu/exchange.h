// Sums over the GPUs of a run, or over the GPUs of all replicas that have the same stages.
//
// By NCCL, sums are enqueued on the GPU and are part of a captured step. Gradients are summed in
// buckets (Li et al., "PyTorch Distributed", 2020, section 3.2). Each bucket is summed on a
// separate stream as soon as the last kernel that writes its gradients is enqueued, while the
// backward pass continues. A bucket is a slice of the flat gradients, which lie in the order in
// which the backward pass makes them.
//
// With `compress`, gradients are exchanged in 16 bits like with PyTorch's communication hooks:
// rounded on the GPU, summed in that type by NCCL or as compressed.h says by the CPUs; the result
// has 16 bits, too. With `shard: optimizer`, each GPU receives only the sum of its piece of each
// bucket (gradient_buckets.h), and the updated weights are gathered after the update.
//
// By the CPUs (`backend: gloo`), gradients are copied to the memory that all workers share, summed
// there in the fixed tree order (comm/tree.h), and copied back. The hosts wait for GPUs and each
// other within a step, so steps are not captured. This is slower, but it needs no NCCL, works with
// several replicas on one GPU, and gives the same bits in every mode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "comm/tree.h"
#include "engine/compressed.h"
#include "engine/gpu/binding.h"
#include "engine/gpu/team.h"
#include "engine/gpu/update.h"
#include "session/buffers.h"
#include "session/gradient_buckets.h"
#include "session/session.h"

namespace dpt {

// Sum of value(shard) over all shards, in the fixed tree order.
template <class Value>
double sum_over_shards(int shards, Value value) {
  std::vector<double> values;
  std::vector<double*> parts;
  for (int s = 0; s < shards; ++s) values.push_back(value(s));
  for (double& v : values) parts.push_back(&v);
  sum_tree(std::span<double* const>(parts), 0, 1);
  return values[0];
}

class GpuExchange {
 public:
  // Called on all workers; waits for the others. calls: the stream for NCCL's calls, if they must
  // share one with others; null: the exchange makes its own. REQUIRES: several replicas; all
  // references outlive it.
  GpuExchange(const Session& session, const Buffers& buffers, const GpuShare& share,
              cuda::DeviceContext& context, GpuTeam& gpus, GpuUpdate& update,
              cuda::Stream* calls = nullptr);
  GpuExchange(const GpuExchange&) = delete;
  GpuExchange& operator=(const GpuExchange&) = delete;

  bool by_nccl() const { return all_ != nullptr; }
  // Null after finish(), or by the CPUs.
  cuda::Communicator* communicator() const { return all_.get(); }

  // The steps of a plan (graph/program/plan.h) of the exchange; each call enqueues. terms: the
  // values of Quantity::loss or ::divisor on the GPU, [2 * count]: their sum over ranks, then the
  // values of the first rank. By the hosts only the sum over each half is right, not each element.
  // decisions: LaunchQueue::decisions() of this worker; those of the first one follow the terms.
  struct Terms {
    double* data = nullptr;
    size_t count = 0;
    const double* decisions = nullptr;  // null: there are none
    // Null: there are none.
    const double* of_first() const { return decisions ? data + 2 * count : nullptr; }
  };
  void record();  // what the GPU has been given so far, for the calls that follow
  void call(const PlanStep& step, const Terms& terms);  // of NCCL, behind the last record()
  void wait();  // the GPU's stream continues when all calls are done
  // By the hosts: copies behind all that the GPU has been given, and the host's part of the sum.
  void copy_to_host(Quantity what, const Terms& terms);
  void sum_on_host(Quantity what, const Terms& terms);
  void copy_from_host(Quantity what, const Terms& terms);
  void share_norm_partials_on_hosts();
  void end_step() { ++steps_; }

  // By NCCL. Sums f64 values in the middle of a step; the stream continues with the sum. data:
  // null: this GPU contributes zeros.
  void sum_now(std::byte* data, const TensorDesc& desc);
  // By NCCL. Transfers between this replica's GPU and others as one group of calls. The stream
  // continues when they are done.
  struct Transfer {
    TensorView value;
    int other;  // replica
    bool sends;
  };
  void pass_now(std::span<const Transfer> all);
  // Bytes of GPU memory that the exchange takes in addition to the gradients.
  static size_t bytes(const Session& session, const GpuShare& share);

  // On all workers, after the last step.
  void finish();

 private:
  void sum(const Bucket& bucket);
  void wait_for_recorded();
  void start_terms(const Terms& terms);
  void sum_in_place(std::byte* data, size_t count, DType dtype);
  void gather_weights();
  void wait_for_gpu();
  void bring_gradients();
  void bring_weights();
  void sum_shards(size_t begin, size_t end);
  void fetch_gradients();
  void fetch_weights();
  std::byte* halves(size_t element) const { return halves_.data() + element * sizeof(uint16_t); }
  void write_halves(cuda::Stream& stream, const Bucket& elements);
  void read_halves(cuda::Stream& stream, const Bucket& elements);

  const Session& session_;
  const std::vector<Bucket>& buckets_;  // of this GPU
  Buffers buffers_;
  const GpuShare& share_;
  cuda::DeviceContext& context_;
  GpuTeam& gpus_;
  GpuUpdate& update_;
  std::unique_ptr<cuda::Stream> own_stream_;
  cuda::Stream* stream_ = nullptr;
  std::unique_ptr<cuda::Event> made_, summed_;  // by the hosts only made_ is used
  bool recorded_ = false;  // made_ has been recorded, and no call has waited for it
  cuda::DeviceBuffer zeros_;
  cuda::DeviceBuffer halves_;  // [trained] 16-bit gradients, with `compress`
  // By the CPUs: pinned memory.
  cuda::DeviceBuffer gradients_, terms_;
  std::optional<CompressedGradients> compressed_;
  uint64_t steps_ = 0;  // that ended
  // By NCCL. Destroyed before the memory and events that its waiting calls may use.
  std::unique_ptr<cuda::Communicator> all_;
};

}  // namespace dpt
