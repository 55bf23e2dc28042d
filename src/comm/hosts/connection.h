// Connection: frames over a TCP socket, without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "comm/hosts/frame.h"

namespace dpt {

// The connection is of no more use. ended: the other end closed it, as a process does that ends;
// otherwise the network, or what came over it, is to blame.
class ConnectionLost : public Error {
 public:
  ConnectionLost(const std::string& why, bool ended) : Error(Fault::rank, why), ended_(ended) {}
  bool ended() const { return ended_; }

 private:
  bool ended_;
};

// Thread: one at a time.
class Connection {
 public:
  Connection() = default;
  explicit Connection(Descriptor socket) : socket_(std::move(socket)) {}

  int get() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void close() { socket_.close(); }

  FrameReader& reader() { return reader_; }
  void use_keys(const Digest& sending, const Digest& receiving);

  // Adds a frame to the queue. flush() writes what the socket takes of it.
  void send(FrameType type, std::span<const std::byte> payload = {});
  void send(FrameType type, std::span<const std::byte> payload, const Digest& payload_digest);
  void flush();                              // throws ConnectionLost
  size_t queued() const { return queued_; }  // bytes

  // The next frame, if all of it has come. Throws ConnectionLost.
  std::optional<Frame> receive();
  uint64_t bytes_received() const { return received_; }

 private:
  void add(std::vector<std::byte> frame);

  Descriptor socket_;
  FrameReader reader_;
  FrameWriter writer_;
  std::deque<std::vector<std::byte>> queue_;
  size_t written_ = 0;  // bytes of the first frame of the queue
  size_t queued_ = 0;
  uint64_t received_ = 0;
};

}  // namespace dpt
