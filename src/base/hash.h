// A fast hash that is not cryptographic, to find accidental changes. sha256.h finds others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dpt {

// Hashes several GB/s. seed: the hash of the bytes before these, or 0.
uint64_t hash_of(std::span<const std::byte> bytes, uint64_t seed);

}  // namespace dpt
