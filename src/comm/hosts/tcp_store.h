// TcpStore: a client of torch's TCPStore, the table of keys and values that torchrun's agent keeps.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "comm/hosts/tcp.h"

namespace dpt {

// Implements VALIDATE, PING, SET, CHECK and GET of the protocol of torch 2.x, little-endian
// (torch/csrc/distributed/c10d/TCPStore.cpp). The store authenticates nobody: what it returns must
// be proved elsewhere. All calls wait until the deadline at most and throw Error{rank}.
class TcpStore {
 public:
  // Connects, and asks whether a TCPStore listens there.
  TcpStore(const TcpAddress& at, Deadline deadline);
  // The same on a connection that there is already; `at` is for messages.
  TcpStore(Descriptor socket, const TcpAddress& at, Deadline deadline);

  void set(std::string_view key, std::string_view value, Deadline deadline);
  // nullopt: nobody has set the key. Throws Error{rank} too if the value has more than 4096 bytes.
  std::optional<std::string> get(std::string_view key, Deadline deadline);

 private:
  void send(std::string_view bytes, Deadline deadline);
  void receive(std::span<std::byte> bytes, Deadline deadline);
  template <class T>
  T receive_number(Deadline deadline);

  TcpAddress at_;
  Descriptor socket_;
};

}  // namespace dpt
