// Sums over the GPUs of a run, or over those of its replicas that have the same stages. Two ways:
//
// By NCCL the sums are part of what a GPU is told, and of a captured step: gradients in buckets
// (Li et al., "PyTorch Distributed", 2020, section 3.2), each on a stream of its own as soon as the
// last kernel that makes a gradient of it is enqueued, while backward makes others. Buckets are
// slices, since gradients lie in the order in which they are made.
//
// With `compress` gradients cross as halves, as by torch's hooks: rounded on the GPU, summed by
// NCCL in that type or by the CPUs as compressed.h says, and what comes back is a half, too. With
// `shard: optimizer` each GPU gets the sum of its own piece of each bucket alone
// (gradient_buckets.h), and the weights that it made of it go to all after the update.
//
// By the CPUs gradients are copied to the memory that all workers share, summed there in the fixed
// tree (comm/tree.h), and copied back, for which hosts wait and meet in the middle of a step, so
// that none is captured. Slower, but it wants no NCCL, goes with several replicas on one GPU, and
// gives every mode the same bits.
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

// Of value(shard), in the fixed tree.
template <class Value>
double sum_over_shards(int shards, Value value) {
  std::vector<double> values;
  std::vector<double*> parts;
  for (int s = 0; s < shards; ++s) values.push_back(value(s));
  for (double& v : values) parts.push_back(&v);
  sum_tree(std::span<double* const>(parts), 0, 1);
  return values[0];
}

class DeviceExchange {
 public:
  // All workers; waits for the others. calls: the stream that its calls of NCCL have to share with
  // other ones; null: it has one of its own. REQUIRES: all references outlive it; several replicas.
  DeviceExchange(const Session& session, const Buffers& buffers, const DeviceShare& share,
                 cuda::DeviceContext& context, DeviceTeam& gpus, DeviceUpdate& update,
                 cuda::Stream* calls = nullptr);
  DeviceExchange(const DeviceExchange&) = delete;
  DeviceExchange& operator=(const DeviceExchange&) = delete;

  bool by_nccl() const { return all_ != nullptr; }
  cuda::Communicator* communicator() const { return all_.get(); }  // null once it has finished

  // By NCCL, each enqueues. Before the backward part of a step's last micro-batch. adds: its
  // gradients are added to those before.
  void begin(const Program& program, bool adds);
  void after(size_t instruction);  // of the backward part
  // The same of stages on several GPUs: before a step's first op, and behind each.
  void begin_ops();
  // In the middle of a step, waited for at once. f64; null: this GPU brings zeros.
  void sum_now(std::byte* data, const TensorDesc& desc);
  // What crosses between this replica's GPU and others, as one group of calls, waited for at once.
  struct Transfer {
    TensorView value;
    int other;  // replica
    bool sends;
  };
  void pass_now(std::span<const Transfer> all);
  // Once all losses of a step are kept, before the backward part that comes last: starts the sum
  // for which end() waits, so that it is done meanwhile.
  void sum_losses();

  // Either way. Numbers of a step in the GPU's memory, [2 * count]: the first half is summed, the
  // second one gets those of the first rank. By the CPUs only the sums over the halves are right.
  void sum_terms(double* data, size_t count, double ShardResult::*what);
  // Sums what is left of the gradients; and the losses, where they are here: by NCCL those are
  // under way since sum_losses().
  void end(bool losses);
  // With `shard: optimizer`, else nothing: what each GPU knows of the norm of its piece, to all;
  // and after the update the weights.
  void share_powers();
  void share_weights();
  // Bytes of the GPU's memory that it takes beside the gradients.
  static size_t bytes(const Session& session, const DeviceShare& share);

  // All workers, after the last step.
  void finish();

 private:
  void sum(const Bucket& bucket);
  void sum(void* data, size_t count, DType dtype);  // once what was enqueued is done
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
  const DeviceShare& share_;
  cuda::DeviceContext& context_;
  DeviceTeam& gpus_;
  DeviceUpdate& update_;
  // By NCCL.
  std::unique_ptr<cuda::Stream> own_stream_;
  cuda::Stream* stream_ = nullptr;
  std::unique_ptr<cuda::Event> made_, summed_;  // by the CPUs: made_ alone
  std::vector<Bucket> buckets_;
  std::map<const Program*, std::vector<size_t>> made_after_;
  std::vector<size_t> made_after_ops_;
  const std::vector<size_t>* awaited_ = nullptr;  // of the program that runs, or the ops
  size_t next_ = 0;                               // bucket
  bool adds_ = false;
  cuda::Memory zeros_;
  cuda::Memory halves_;  // with `compress`: of the gradients
  // By the CPUs: pinned.
  cuda::Memory gradients_, terms_;
  std::optional<CompressedGradients> compressed_;
  uint64_t steps_ = 0;  // that are summed
  // By NCCL. Gone before what its calls may be waiting with.
  std::unique_ptr<cuda::Communicator> all_;
};

}  // namespace dpt
