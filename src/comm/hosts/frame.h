// Frames: how messages of the control channel lie on a TCP connection.
//
//   offset  bytes
//        0      4  "DPTC"
//        4      1  version of the protocol
//        5      1  type
//        6      2  0
//        8      4  length of the payload, little-endian
//       12      4  0
//       16      n  payload
//   16 + n     32  HMAC-SHA256(key, number of the frame (8 bytes), header, SHA-256(payload))
//
// Each direction of a connection has its own key and counts its frames from 0, so frames can be
// neither forged, replayed, reordered nor reflected. Before there are keys (comm/hosts/handshake.h)
// the key is empty, and the HMAC only detects damage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/sha256.h"

namespace dpt {

enum class FrameType : uint8_t {
  challenge,  // host 0's nonce
  response,   // the other host's nonce, and its proof that it knows the secret
  proof,      // host 0's, and the launch id
  denied,     // host 0 does not accept the response
  hello,      // what the host is
  welcome,    // the map of all hosts
  refused,    // why there is no run
  beat,       // the host runs, and where it is
  abort,      // the run has failed, and why
  stop,       // a stop signal has arrived
  goodbye,    // the host has ended as it should
  gather,     // a host's string
  gathered,   // the strings of all hosts
  ready,      // the number of bytes that the host wants of a broadcast
  chunk,      // bytes of a broadcast
};
inline constexpr size_t kFrameTypes = 15;
inline constexpr size_t kFrameHeader = 16;  // bytes

struct Frame {
  FrameType type{};
  std::vector<std::byte> payload;
};

// Makes the frames of one direction.
class FrameWriter {
 public:
  void use_key(const Digest& key) { key_ = key, keyed_ = true, number_ = 0; }
  // REQUIRES: payload_digest is the SHA-256 of payload
  std::vector<std::byte> frame(FrameType type, std::span<const std::byte> payload,
                               const Digest& payload_digest);
  std::vector<std::byte> frame(FrameType type, std::span<const std::byte> payload) {
    return frame(type, payload, Sha256().update(payload).digest());
  }

 private:
  Digest key_{};
  bool keyed_ = false;
  uint64_t number_ = 0;
};

// Reads the frames of one direction. Memory is allocated only for a payload whose type the receiver
// accepts at this moment and whose length is within the receiver's limit for it; one frame is held
// at a time.
class FrameReader {
 public:
  void use_key(const Digest& key) { key_ = key, keyed_ = true, number_ = 0; }

  // From now on accepts frames of this type with at most `bytes` of payload. At first, none.
  void accept(FrameType type, size_t bytes);
  void refuse(FrameType type);

  // Where the next bytes go: at most the rest of the frame. Valid until the next call.
  std::span<std::byte> space();
  // Call it after `bytes` bytes have been written to space(). Returns the frame that they complete,
  // if any. Throws Error{rank} if what came is no frame, or not one that is accepted; the reader
  // cannot be used afterwards. REQUIRES: bytes <= space().size()
  std::optional<Frame> take(size_t bytes);

 private:
  void check_header();

  std::array<int64_t, kFrameTypes> most_ = none();  // -1: not accepted
  static constexpr std::array<int64_t, kFrameTypes> none() {
    std::array<int64_t, kFrameTypes> out{};
    out.fill(-1);
    return out;
  }
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kFrameHeader);
  size_t filled_ = 0;
  Digest key_{};
  bool keyed_ = false;
  uint64_t number_ = 0;
};

}  // namespace dpt
