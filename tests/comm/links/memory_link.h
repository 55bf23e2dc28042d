// Links between the threads of one process, for tests. They can be made to fail as networks do.
#pragma once

#include <memory>

#include "comm/links/connect_link.h"

namespace dpt {

class MemoryNetworkState;

// Connects `hosts` links. A send completes when the other host has received it, as with gloo.
// Thread: any. The network may be destroyed before its links.
class MemoryNetwork {
 public:
  explicit MemoryNetwork(int hosts, double timeout_s = 60);

  // The link of a host. Without all_gather: nothing is agreed on before.
  std::unique_ptr<Link> connect(int host);
  // connect() for code that takes one function for every host.
  ConnectLink connector();

  // Ends a host as if its process were killed: the others' messages to and from it fail, its own
  // calls throw.
  void drop(int host);
  // Messages between all hosts take at least so long.
  void delay(double seconds);
  // While true, no message is delivered.
  void hold(bool held);
  // From now on, messages of different tags or hosts are delivered in an order drawn from `seed`.
  void reorder(uint64_t seed);
  // The next message from one host to another arrives without its last byte, which the receiver
  // reports. REQUIRES: it is not empty.
  void truncate_next(int from, int to);

  // Payload bytes that have been delivered.
  uint64_t bytes() const;

 private:
  std::shared_ptr<MemoryNetworkState> state_;
};

}  // namespace dpt
