#include "base/sha256.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace dpt {
namespace {

constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::block(const std::byte* bytes) {
  uint32_t w[64];
  for (size_t i = 0; i < 16; ++i) {
    w[i] = 0;
    for (size_t k = 0; k < 4; ++k) w[i] = w[i] << 8 | std::to_integer<uint32_t>(bytes[4 * i + k]);
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t add[] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += add[i];
}

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t filled = size_ % 64, take = std::min(64 - filled, bytes.size());
    if (take == 64) {
      block(bytes.data());
    } else {
      std::ranges::copy(bytes.first(take), &tail_[filled]);
      if (filled + take == 64) block(tail_.data());
    }
    size_ += take;
    bytes = bytes.subspan(take);
  }
  return *this;
}

std::array<std::byte, 32> Sha256::digest() {
  std::array<std::byte, 8> bits{};  // the length, big-endian
  for (size_t i = 0; i < 8; ++i) bits[i] = static_cast<std::byte>(size_ * 8 >> (56 - 8 * i));
  constexpr std::array<std::byte, 64> kPad{std::byte{0x80}};
  update(std::span(kPad).first(1 + (119 - size_ % 64) % 64));
  update(bits);
  std::array<std::byte, 32> out{};
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
  return out;
}

std::string Sha256::hex() {
  std::string out;
  for (const std::byte b : digest()) out += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return out;
}

Digest hmac_sha256(std::span<const std::byte> key,
                   std::initializer_list<std::span<const std::byte>> parts) {
  std::array<std::byte, 64> block{};
  if (key.size() > block.size())
    std::ranges::copy(Sha256().update(key).digest(), block.begin());
  else
    std::ranges::copy(key, block.begin());
  for (std::byte& b : block) b ^= std::byte{0x36};
  Sha256 inner;
  inner.update(block);
  for (const std::span<const std::byte> part : parts) inner.update(part);
  for (std::byte& b : block) b ^= std::byte{0x36} ^ std::byte{0x5c};
  return Sha256().update(block).update(inner.digest()).digest();
}

bool equal_in_constant_time(const Digest& a, const Digest& b) noexcept {
  // volatile: the compiler must not end the loop at the first difference.
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = difference | std::to_integer<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace dpt
