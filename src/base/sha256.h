// SHA-256 (FIPS 180-4), for checking data files and golden values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
  // The digest as 64 hexadecimal digits. The object cannot be used afterwards.
  std::string hex();

 private:
  void block(const std::byte* bytes);
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> tail_{};  // the bytes of an incomplete block
  uint64_t size_ = 0;                 // bytes hashed so far
};

}  // namespace dpt
