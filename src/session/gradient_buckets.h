// How the flat gradients of GPUs are cut: into the buckets that are summed at once while backward
// makes others, and, with `shard: optimizer`, each of these into a piece for every GPU.
#pragma once

#include <cstddef>
#include <vector>

#include "session/gpu_share.h"
#include "session/session.h"

namespace dpt {

// Elements of the gradients on one GPU, counted from its share's first.
struct Bucket {
  size_t begin = 0, end = 0;
  size_t count() const { return end - begin; }
  bool operator==(const Bucket&) const = default;
};

// Whole parameters each; with `shard: optimizer` cut where all pieces are equal. The first takes
// those up to 1 MiB, so that something is sent early, the others up to `mib`: torch's rule, by
// which the parameter that fills a bucket is its last. One bucket where the CPUs sum.
std::vector<Bucket> gradient_buckets(const Session& session, const DeviceShare& share, double mib);
// Of the size asked for.
std::vector<Bucket> gradient_buckets(const Session& session, const DeviceShare& share);
double bucket_mib(const Session& session);  // as asked for, or torch's 25

// Of each bucket: the instruction of the backward part after which all before and in it are made.
std::vector<size_t> made_after(const Program& program, const std::vector<Bucket>& buckets);
// Of stages on several GPUs: which op of the schedule of the share's GPU.
std::vector<size_t> made_after_ops(const Session& session, const DeviceShare& share,
                                   const std::vector<Bucket>& buckets);

// Elements of the trained parameters whose states a GPU keeps and which it updates: all that are
// here, or with `shard: optimizer` its replica's piece of each bucket (Rajbhandari et al., "ZeRO",
// 2020, stage 1).
std::vector<Bucket> own_pieces(const Session& session, const DeviceShare& share, int replica);
Bucket own_piece(const Session& session, const Bucket& bucket, int replica);

// Elements whose multiple what is trained has to be, so that GPUs have equal pieces of it.
size_t pieces_multiple(const Session& session);

}  // namespace dpt
