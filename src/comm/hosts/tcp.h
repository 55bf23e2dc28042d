// TCP sockets for the control channel: addresses, listening on one interface, connecting.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/descriptor.h"

namespace dpt {

using Deadline = std::chrono::steady_clock::time_point;

// A numeric IPv4 or IPv6 address with a port.
struct TcpAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  std::string host() const;  // "10.0.0.2", "fd00::2"
  int port() const;
  std::string text() const;  // "10.0.0.2:29500", "[fd00::2]:29500"
  bool is_loopback() const;
};

// The addresses of a name, or of a numeric address. A name other than localhost that has loopback
// addresses only, as Debian gives a machine's own name 127.0.1.1, also has the address of the
// interface with the default route. Throws Error{rank} if the name is unknown.
std::vector<TcpAddress> resolve(const std::string& host, int port);

// The same for a numeric address, without asking anybody; nullopt: the text is none.
std::optional<TcpAddress> numeric_address(const std::string& host, int port);

// The name of the network interface that has this numeric address, "eth0"; empty: none has.
std::string interface_of(const std::string& address);

// The own address of the interface through which `to` is reached, with port 0. Throws Error{rank}.
TcpAddress own_address_towards(const TcpAddress& to);

// Listens on one address, and so on one interface. Throws Error{rank}; its text says why.
class TcpListener {
 public:
  // port 0: any free one
  explicit TcpListener(const TcpAddress& at);
  int get() const { return socket_.get(); }
  TcpAddress address() const;  // with its port
  // The next connection that is pending, ready for use; empty: there is none.
  Descriptor accept(TcpAddress& from);

 private:
  Descriptor socket_;
};

// Whether this machine has the address, so that it can listen there.
bool is_own_address(const TcpAddress& address);

// Connects within the deadline; `source` (empty: the system chooses) is the own address to use.
// Empty: it failed, and `why` says so: "connection refused".
Descriptor connect_tcp(const TcpAddress& to, const std::string& source, Deadline deadline,
                       std::string& why);

// The addresses of the two ends of a connection.
TcpAddress own_end(int socket);
TcpAddress other_end(int socket);

// Waits until the socket is readable or writable (poll's events), or the deadline has passed.
void wait_for_socket(int socket, short events, Deadline deadline);

Deadline deadline_in(double seconds);

}  // namespace dpt
