// SHA-256 (FIPS 180-4), for checking data files and golden values, and HMAC-SHA256 (RFC 2104), for
// messages between hosts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace dpt {

class Sha256 {
 public:
  Sha256& update(std::span<const std::byte> bytes);
  template <class T>
  Sha256& update(std::span<const T> values) {  // hashes their bytes as they lie in memory
    return update(std::as_bytes(values));
  }
  Sha256& update(std::string_view text) { return update(std::span(text.data(), text.size())); }
  // The digest, as bytes or as 64 hexadecimal digits. The object cannot be used afterwards.
  std::array<std::byte, 32> digest();
  std::string hex();

 private:
  void block(const std::byte* bytes);
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> tail_{};  // the bytes of an incomplete block
  uint64_t size_ = 0;                 // bytes hashed so far
};

using Digest = std::array<std::byte, 32>;

// HMAC-SHA256 of the concatenated parts. Parts of varying length must be told apart by the caller.
Digest hmac_sha256(std::span<const std::byte> key,
                   std::initializer_list<std::span<const std::byte>> parts);

// Whether the digests are equal, in a time that does not depend on where they differ.
bool equal_in_constant_time(const Digest& a, const Digest& b) noexcept;

}  // namespace dpt
