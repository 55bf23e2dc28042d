// Numbers and strings as bytes, little-endian, for messages between hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/fail.h"

namespace dpt {

class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    const auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<std::byte>(static_cast<uint64_t>(bits) >> (8 * i) & 0xff));
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // The length (4 bytes), then at most `most` bytes; the rest is cut off.
  void text(std::string_view text, size_t most) {
    text = text.substr(0, most);
    number(static_cast<uint32_t>(text.size()));
    raw(std::as_bytes(std::span(text)));
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Every function throws Error{rank} if fewer bytes are left, or a string is longer than its limit.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T number() {
    static_assert(std::is_integral_v<T>);
    uint64_t bits = 0;
    const std::span<const std::byte> from = raw(sizeof(T));
    for (size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<uint64_t>(from[i]) << (8 * i);
    return static_cast<T>(bits);
  }
  std::span<const std::byte> raw(size_t count) {
    if (count > bytes_.size()) fail(Fault::rank, "a message is too short");
    const std::span<const std::byte> out = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return out;
  }
  std::string text(size_t most) {
    const auto size = number<uint32_t>();
    if (size > most) fail(Fault::rank, "a message has a text of {} bytes", size);
    const std::span<const std::byte> from = raw(size);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  // Nothing may be left.
  void end() const {
    if (!bytes_.empty()) fail(Fault::rank, "a message is too long");
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace dpt
