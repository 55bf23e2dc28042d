// The messages of one training step that PyTorch's ways to train on several devices would send for
// a session's net, and those of the session's own plan: what `dptrain plan --bytes` prints.
//
// Sources:
//   torch.nn.DataParallel: torch/nn/parallel/{data_parallel,replicate,scatter_gather}.py
//   DistributedDataParallel: Li et al., "PyTorch Distributed: Experiences on Accelerating Data
//     Parallel Training", VLDB 2020; buckets: compute_bucket_assignment_by_size() in
//     torch/csrc/distributed/c10d/reducer.cpp, on gradients in the order of the backward pass
//   ZeRO 1 to 3: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
//     Models", SC 2020; ZeroRedundancyOptimizer in torch/distributed/optim; fully_shard in
//     torch/distributed/fsdp (Zhao et al., "PyTorch FSDP", VLDB 2023)
//   pipelines: Huang et al., "GPipe", NeurIPS 2019; 1F1B: Narayanan et al., "PipeDream", SOSP 2019
//   rings: Patarasuk and Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
//     Workstations", 2009
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/session.h"

namespace dpt {

// One message, or several of the same form.
struct Message {
  // send: from one rank to another. broadcast: from one rank to all others. reduce: the sum over
  // all ranks, to one rank. The others have no `from` and `to`.
  enum class Kind { send, broadcast, reduce, all_reduce, all_gather, reduce_scatter, own };
  Kind kind = Kind::send;
  int from = -1, to = -1;  // ranks; broadcast: from; reduce: to
  std::string what;        // "fc.bias to layer4.1.conv2.weight (7 tensors)"
  uint64_t bytes = 0;      // of the whole tensor, once
  int64_t times = 1;       // per step
  std::string own{};       // own: the name of an instruction of dptrain's plan
};

struct RankBytes {
  uint64_t sends = 0, receives = 0;
  bool operator==(const RankBytes&) const = default;
};

// One way to train.
struct MessageList {
  std::string name;  // "DistributedDataParallel"
  std::string note;  // what the reader must know about the list, or why it is empty
  std::vector<Message> messages;
  std::vector<RankBytes> ranks;  // totals of a step for each rank (device)
};

// The bytes of the message that rank `rank` of n sends and receives, `times` times. Collectives
// count as rings: all_reduce of b bytes sends and receives 2 b (n - 1) / n on each rank,
// reduce_scatter and all_gather b (n - 1) / n. A broadcast passes b bytes from rank to rank around
// the ring, beginning with `from`; a reduce ends with `to`.
RankBytes bytes_of_rank(const Message& m, int rank, int n);

// The gradients' buckets of DistributedDataParallel: runs of `sizes` (bytes of each gradient in the
// order in which they are computed) of at least `first` bytes for the first bucket, and `other`
// bytes for later ones; the last one may be smaller. Returns where each bucket ends.
std::vector<size_t> ddp_buckets(const std::vector<uint64_t>& sizes, uint64_t first, uint64_t other);

// DataParallel, DistributedDataParallel, ZeRO 1 to 3, a pipeline, and the session's own plan. The
// ranks are the devices of the spec. REQUIRES: the session has at least two devices, on one host.
std::vector<MessageList> message_lists(const Session& session);

}  // namespace dpt
