// How the gradients of GPUs are split: into buckets, each summed over GPUs while the backward part
// computes others, and with `shard: optimizer` each bucket into a piece per GPU.
#pragma once

#include <cstddef>
#include <vector>

#include "session/compiled_model.h"
#include "session/devices.h"
#include "session/gpu_share.h"
#include "session/session_batches.h"

namespace dpt {

// The buckets of a GPU. They end at parameters; with `shard: optimizer`, these ends are rounded
// down to multiples of pieces_multiple(), so that pieces are equal. As in PyTorch, a bucket ends
// with the parameter that fills it: the first one at 1 MiB, so that communication begins early, the
// others at `mib`. If the host sums, the overload below returns one bucket.
std::vector<Bucket> gradient_buckets(const Devices& devices, const CompiledModel& model,
                                     const GpuShare& share, double mib);
// With the bucket size of the session.
std::vector<Bucket> gradient_buckets(const Devices& devices, const CompiledModel& model,
                                     const GpuShare& share);
double bucket_mib(const Devices& devices);  // as in the spec, or PyTorch's 25

// For each bucket: the instruction of the backward part after which this and all earlier buckets
// are complete.
std::vector<size_t> made_after(const Program& program, const std::vector<Bucket>& buckets);
// For stages on several GPUs: the operation in the schedule of the GPU, `ops`.
std::vector<size_t> made_after_ops(const SessionBatches& batches, const CompiledModel& model,
                                   const GpuShare& share, const std::vector<StageOp>& ops,
                                   const std::vector<Bucket>& buckets);

// The trained elements whose states a GPU keeps and which it updates: all elements of the GPU, or
// with `shard: optimizer` the replica's piece of each bucket (Rajbhandari et al., "ZeRO", 2020,
// stage 1).
std::vector<Bucket> own_pieces(const Devices& devices, const CompiledModel& model,
                               const GpuShare& share, int replica);
Bucket own_piece(const Devices& devices, const Bucket& bucket, int replica);

// The number of trained elements must be a multiple of this, so that GPUs have equal pieces.
size_t pieces_multiple(const Devices& devices);

}  // namespace dpt
