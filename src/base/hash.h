// A fast hash of many bytes, for changes that nobody makes on purpose: sha256.h is for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dpt {

// The hash of some bytes, at some GB/s; `seed`: that of bytes before them, or 0.
uint64_t hash_of(std::span<const std::byte> bytes, uint64_t seed);

}  // namespace dpt
