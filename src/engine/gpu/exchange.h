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
#include <map>
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

  // By NCCL only; each call enqueues. begin() precedes the backward pass of a step's last
  // micro-batch. adds: its gradients have to be added to those of earlier micro-batches.
  void begin(const Program& program, bool adds);
  void after(size_t instruction);  // call it when this instruction of the backward pass is enqueued
  // The same with stages on several GPUs: begin_ops() before a step's first op, after() behind each
  // op.
  void begin_ops();
  // Sums f64 values in the middle of a step; the stream continues with the sum. data: null: this
  // GPU contributes zeros.
  void sum_now(std::byte* data, const TensorDesc& desc);
  // Transfers between this replica's GPU and others as one group of NCCL calls. The stream
  // continues when they are done.
  struct Transfer {
    TensorView value;
    int other;  // replica
    bool sends;
  };
  void pass_now(std::span<const Transfer> all);
  // Starts the sum of the losses, for which end() waits. Call it when all losses of a step are kept
  // and before the last backward pass, so that both run at the same time.
  void sum_losses();

  // By NCCL and by the CPUs. data: [2 * count] in the GPU's memory. The first half becomes the sum
  // over ranks, the second half the values of the first rank. By the CPUs only the sum over each
  // half is right, not each element.
  void sum_terms(double* data, size_t count, double ShardResult::*field);
  // Completes the sum of the gradients. losses: also the sum of the losses, if they are on this
  // GPU; by NCCL that sum was started by sum_losses().
  void end(bool losses);
  // With `shard: optimizer`; otherwise they do nothing. share_powers() exchanges the norm partials
  // of the pieces; share_weights() gathers the weights after the update.
  void share_norm_partials();
  void share_weights();
  // Bytes of GPU memory that the exchange takes in addition to the gradients.
  static size_t bytes(const Session& session, const GpuShare& share);

  // On all workers, after the last step.
  void finish();

 private:
  void sum(const Bucket& bucket);
  void sum(void* data, size_t count, DType dtype);  // waits for the work enqueued so far
  void start_terms(double* data, size_t count);
  void sum_in_place(std::byte* data, size_t count, DType dtype);
  void wait_for_made();
  void wait_for_sums();
  void wait_for_gpu();
  void sum_gradients_on_host();
  void bring_gradients();
  void sum_shards(size_t begin, size_t end);
  std::byte* halves(size_t element) const { return halves_.data() + element * sizeof(uint16_t); }
  void write_halves(cuda::Stream& stream, const Bucket& elements);
  void read_halves(cuda::Stream& stream, const Bucket& elements);

  const Session& session_;
  Buffers buffers_;
  const GpuShare& share_;
  cuda::DeviceContext& context_;
  GpuTeam& gpus_;
  GpuUpdate& update_;
  std::unique_ptr<cuda::Stream> own_stream_;
  cuda::Stream* stream_ = nullptr;
  std::unique_ptr<cuda::Event> made_, summed_;  // by the CPUs only made_ is used
  std::vector<Bucket> buckets_;
  std::map<const Program*, std::vector<size_t>> made_after_;
  std::vector<size_t> made_after_ops_;
  const std::vector<size_t>* awaited_ = nullptr;  // of the program that runs, or made_after_ops_
  size_t next_ = 0;                               // index of the next bucket
  bool adds_ = false;
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
