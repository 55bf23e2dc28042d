// Sums a tile of all shards' gradients, out of place, in the order of comm/tree.h: parts[s] +
// parts[s + 1], then + 2, + 4, ... Only for .inc.cpp files.
#pragma once

#include "backend/cpu/simd/vector.h"

namespace dpt::DPT_ISA {

// Elements; a tile and the levels of the tree stay in L1.
constexpr size_t kShardTile = 512;
constexpr int kShardLevels = 32;  // of the tree; shard counts are ints

// Sums kCount shards, 1 to 4, in registers and in the order of the tree.
template <int kCount>
DPT_SIMD void sum_few(float* to, const float* const* shards, size_t offset, size_t count) {
  const float* a = shards[0] + offset;
  const float* b = kCount > 1 ? shards[1] + offset : nullptr;
  const float* c = kCount > 2 ? shards[2] + offset : nullptr;
  const float* d = kCount > 3 ? shards[3] + offset : nullptr;
  const auto sum = [&](auto&& load_lanes, size_t i) __attribute__((always_inline)) {
    Vector s = load_lanes(a + i);
    if constexpr (kCount > 1) s = add(s, load_lanes(b + i));
    if constexpr (kCount == 3) s = add(s, load_lanes(c + i));
    if constexpr (kCount == 4) s = add(s, add(load_lanes(c + i), load_lanes(d + i)));
    return s;
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(to + i, sum(
                      [](const float* p) __attribute__((always_inline)) { return load(p); }, i));
  if (i == count) return;
  const Mask mask = first(count - i);
  store_first(
      to + i, mask,
      sum(
          [mask](const float* p) __attribute__((always_inline)) { return load_first(p, mask); },
          i));
}

// `to` may be a or b.
DPT_SIMD void add_tiles(float* to, const float* a, const float* b, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, add(load(a + i), load(b + i)));
  for (; i < count; ++i) to[i] = a[i] + b[i];
}

// Sums any number of shards like a binary counter: the stack holds sums of blocks of 2^l shards,
// with l decreasing towards the top; two blocks of equal size are added.
[[gnu::noinline]] static void sum_many(float* to, const float* const* shards, int shard_count,
                                       size_t offset, size_t count) {
  float stack[kShardLevels][kShardTile];
  int top = 0;  // number of blocks on the stack
  for (int s = 0; s + 2 <= shard_count; s += 2) {
    add_tiles(stack[top++], shards[s] + offset, shards[s + 1] + offset, count);
    for (int pairs = s / 2 + 1; pairs % 2 == 0; pairs /= 2, --top)
      add_tiles(stack[top - 2], stack[top - 2], stack[top - 1], count);
  }
  if (top == 1 && shard_count % 2 == 0) {  // a power of two
    __builtin_memcpy(to, stack[0], count * sizeof(float));
    return;
  }
  const float* right = shard_count % 2 != 0 ? shards[shard_count - 1] + offset : stack[--top];
  while (top > 1) {
    --top;
    add_tiles(stack[top], stack[top], right, count);
    right = stack[top];
  }
  add_tiles(to, stack[0], right, count);
}

// to[i] = the sum over s of shards[s][offset + i], i < count <= kShardTile. `to` may be one of the
// shards.
DPT_SIMD void sum_shards(float* to, const float* const* shards, int shard_count, size_t offset,
                         size_t count) {
  switch (shard_count) {
    case 1:
      return sum_few<1>(to, shards, offset, count);
    case 2:
      return sum_few<2>(to, shards, offset, count);
    case 3:
      return sum_few<3>(to, shards, offset, count);
    case 4:
      return sum_few<4>(to, shards, offset, count);
    default:
      return sum_many(to, shards, shard_count, offset, count);
  }
}

}  // namespace dpt::DPT_ISA
