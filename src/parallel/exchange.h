// How ranks share a step's gradients and the optimizer's states: the keys `shard`, `compress`,
// `backend` and `bucket_cap_mb` of the modes.
#pragma once

#include <optional>
#include <string>

#include "base/tensor.h"
#include "spec/keys.h"

namespace dpt {

struct Exchange {
  // The half to which gradients are compressed; empty: f32. As PyTorch's fp16_compress_hook and
  // bf16_compress_hook:
  //   gradient = half(sum over shards, in the fixed tree and in f32, of half(the shard's gradient))
  std::optional<DType> compress;
  // Each worker keeps the optimizer states of its share of the parameters for itself, as ranks do
  // with PyTorch's ZeroRedundancyOptimizer. Otherwise states are in shared memory.
  bool shard_states = false;
  // Who sums gradients of GPUs, and copies between GPUs of different processes. Empty: NCCL, or the
  // host if replicas share a GPU.
  enum class Backend { nccl, host };
  std::optional<Backend> backend;
  bool by_mpi = false;  // hosts exchange data by MPI; else by gloo
  // Bucket size in MiB: gradients that GPUs sum together while the backward part computes others.
  // The first bucket is 1 MiB, or `bucket_mib` if that is smaller, as in PyTorch. With several
  // hosts: gradients that these exchange together.
  std::optional<double> bucket_mib;
};

// Keys of modes with several GPUs, for their KeyTables.
struct GpuExchangeKeys {
  std::optional<std::string> backend;
  std::optional<double> bucket_cap_mb;

  template <class Config>
  static void add(KeyTable<Config>& table) {
    table
        .choice("backend", &Config::backend, {"nccl", "gloo", "mpi"},
                "how GPUs exchange gradients, and activations between processes: by NCCL, or "
                "by the CPUs through shared memory (gloo, mpi). How CPUs of several machines "
                "exchange them: by gloo, or by MPI if mpirun or srun started the ranks; none: "
                "gloo. GPUs of several machines always use NCCL")
        .optional("bucket_cap_mb", &Config::bucket_cap_mb,
                  "MiB of gradients that NCCL sums at once during the backward pass (none: 25), or "
                  "that several machines exchange at once, also during the backward pass (none: "
                  "at most 8)",
                  kPositive);
  }

  void set(Exchange& out) const {
    if (backend)
      out.backend = *backend == "nccl" ? Exchange::Backend::nccl : Exchange::Backend::host;
    out.by_mpi = backend == "mpi";
    out.bucket_mib = bucket_cap_mb;
  }
};

// Keys of modes with several ranks. Their settings derive from this struct.
struct ExchangeKeys {
  std::optional<std::string> shard, compress;

  template <class Config>
  static void add(KeyTable<Config>& table) {
    table
        .choice("shard", &Config::shard, {"optimizer"},
                "optimizer: each rank holds the optimizer states of its share of the "
                "parameters only, like PyTorch's ZeroRedundancyOptimizer")
        .choice("compress", &Config::compress, {"fp16", "bf16"},
                "precision of the gradients that ranks exchange, like PyTorch's fp16_compress_hook "
                "and bf16_compress_hook");
  }

  Exchange exchange() const {
    Exchange out{.shard_states = shard.has_value()};
    if (compress) out.compress = *compress == "fp16" ? DType::f16 : DType::bf16;
    return out;
  }
};

}  // namespace dpt
