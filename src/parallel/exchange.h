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
