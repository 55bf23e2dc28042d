// How replicas that are processes share a step's gradients and the optimizer's states: what
// `shard:` and `compress:` ask for, beside the other keys of a mode.
#pragma once

#include <optional>
#include <string>

#include "base/tensor.h"
#include "spec/keys.h"

namespace dpt {

struct Exchange {
  // What of a shard's gradients others read: halves of that type; empty: all of it, as f32. As
  // torch's fp16_compress_hook and bf16_compress_hook:
  //   gradient = half(sum over shards, in the fixed tree and in f32, of half(the shard's))
  std::optional<DType> compress;
  // Each worker keeps the states of its share of the parameters for itself, as torch's
  // ZeroRedundancyOptimizer does with ranks; else they lie where all could reach them.
  bool shard_states = false;
  // Who sums the gradients of GPUs, and copies between those of different processes; empty: NCCL,
  // or the CPUs where a GPU has several of them.
  enum class Backend { nccl, host };
  std::optional<Backend> backend;
  // MiB of gradients that GPUs sum at once while backward makes others; the first ones are 1 MiB at
  // most, as torch's.
  std::optional<double> bucket_mib;
};

// The keys of modes that have several GPUs, for their KeyTables.
struct GpuExchangeKeys {
  std::optional<std::string> backend;
  std::optional<double> bucket_cap_mb;

  template <class Config>
  static void add(KeyTable<Config>& table) {
    table
        .choice(
            "backend", &Config::backend, {"nccl", "gloo"},
            "who sums gradients, and copies between stages that are processes: GPUs by NCCL, or "
            "the CPUs in the memory that ranks share")
        .optional("bucket_cap_mb", &Config::bucket_cap_mb,
                  "MiB of gradients that NCCL sums at once while backward makes others; none: 25",
                  kPositive);
  }

  void set(Exchange& out) const {
    if (backend)
      out.backend = *backend == "nccl" ? Exchange::Backend::nccl : Exchange::Backend::host;
    out.bucket_mib = bucket_cap_mb;
  }
};

// The keys, for the KeyTable of a mode whose settings derive from this.
struct ExchangeKeys {
  std::optional<std::string> shard, compress;

  template <class Config>
  static void add(KeyTable<Config>& table) {
    table
        .choice("shard", &Config::shard, {"optimizer"},
                "optimizer: a rank keeps the states of its own share of the parameters for itself, "
                "as ZeroRedundancyOptimizer")
        .choice("compress", &Config::compress, {"fp16", "bf16"},
                "what ranks read of each other's gradients is rounded to it, as by torch's "
                "compression hooks");
  }

  Exchange exchange() const {
    Exchange out{.shard_states = shard.has_value()};
    if (compress) out.compress = *compress == "fp16" ? DType::f16 : DType::bf16;
    return out;
  }
};

}  // namespace dpt
