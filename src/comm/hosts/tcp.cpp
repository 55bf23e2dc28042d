#include "comm/hosts/tcp.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "base/fail.h"
#include "comm/endpoint.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;

std::string words_of(int error) { return std::generic_category().message(error); }

const sockaddr* sockaddr_of(const TcpAddress& a) {
  return reinterpret_cast<const sockaddr*>(&a.storage);
}

void set_option(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);  // if it fails, faults are seen later
}

// Small messages leave at once, and a machine or network that vanished is noticed: unacknowledged
// data for 10 s, or no answer to 3 probes, ends the connection.
void set_options(int socket) {
  constexpr int kUnacknowledgedMs = 10'000, kIdleS = 5, kProbeS = 5, kProbes = 3;
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleS);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeS);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

TcpAddress named(int (*name_of)(int, sockaddr*, socklen_t*), int socket) {
  TcpAddress out;
  out.size = sizeof out.storage;
  if (name_of(socket, reinterpret_cast<sockaddr*>(&out.storage), &out.size) != 0) out.size = 0;
  return out;
}

std::vector<TcpAddress> look_up(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  if (error != 0)
    fail(Fault::rank, "cannot find the address of '{}': {}", host, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(first, freeaddrinfo);
  std::vector<TcpAddress> out;
  for (const addrinfo* i = first; i != nullptr; i = i->ai_next) {
    if (i->ai_addrlen > sizeof(sockaddr_storage)) continue;
    TcpAddress address;
    std::memcpy(&address.storage, i->ai_addr, i->ai_addrlen);
    address.size = i->ai_addrlen;
    out.push_back(address);
  }
  return out;
}

// Empty: there is no default route.
std::vector<TcpAddress> default_interface(int port) {
  try {
    // No packet is sent. The address is one of those that are reserved for documentation.
    const TcpAddress own = own_address_towards(look_up("192.0.2.1", 1, AI_NUMERICHOST).front());
    return own.is_loopback() ? std::vector<TcpAddress>()
                             : look_up(own.host(), port, AI_NUMERICHOST);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Deadline deadline_in(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string TcpAddress::host() const {
  std::array<char, NI_MAXHOST> text{};
  if (size == 0 || getnameinfo(sockaddr_of(*this), size, text.data(), text.size(), nullptr, 0,
                               NI_NUMERICHOST) != 0)
    return "an unknown address";
  return text.data();
}

int TcpAddress::port() const {
  if (storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
}

std::string TcpAddress::text() const { return endpoint_text(host(), port()); }

bool TcpAddress::is_loopback() const {
  if (storage.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
  return storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
}

std::vector<TcpAddress> resolve(const std::string& host, int port) {
  std::vector<TcpAddress> out = look_up(host, port, 0);
  in6_addr unused{};
  const bool numeric = inet_pton(AF_INET, host.c_str(), &unused) == 1 ||
                       inet_pton(AF_INET6, host.c_str(), &unused) == 1;
  if (!numeric && host != "localhost" && std::ranges::all_of(out, &TcpAddress::is_loopback)) {
    const std::vector<TcpAddress> more = default_interface(port);
    out.insert(out.begin(), more.begin(), more.end());
  }
  return out;
}

std::optional<TcpAddress> numeric_address(const std::string& host, int port) {
  try {
    return look_up(host, port, AI_NUMERICHOST).front();
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string interface_of(const std::string& address) {
  const std::optional<TcpAddress> wanted = numeric_address(address, 0);
  if (!wanted) return "";
  if (wanted->is_loopback()) return "lo";  // which has all of 127.0.0.0/8
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(first, freeifaddrs);
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != wanted->storage.ss_family) continue;
    TcpAddress own;
    own.size = wanted->size;
    std::memcpy(&own.storage, i->ifa_addr, own.size);
    if (own.host() == wanted->host()) return i->ifa_name;
  }
  return "";
}

TcpAddress own_address_towards(const TcpAddress& to) {
  const Descriptor s(socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Connecting a datagram socket sends nothing, but chooses the interface.
  if (!s || connect(s.get(), sockaddr_of(to), to.size) != 0)
    fail(Fault::rank, "no network interface reaches {}: {}", to.host(), words_of(errno));
  return look_up(own_end(s.get()).host(), 0, AI_NUMERICHOST).front();
}

TcpListener::TcpListener(const TcpAddress& at)
    : socket_(socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!socket_) fail(Fault::rank, "cannot create a socket: {}", words_of(errno));
  // A run that restarts finds the connections of the one before still in the state TIME_WAIT.
  set_option(socket_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(socket_.get(), sockaddr_of(at), at.size) != 0 || listen(socket_.get(), SOMAXCONN) != 0)
    fail(Fault::rank, "cannot listen on {}: {}", at.text(), words_of(errno));
}

TcpAddress TcpListener::address() const { return own_end(socket_.get()); }

Descriptor TcpListener::accept(TcpAddress& from) {
  from = {};
  from.size = sizeof from.storage;
  Descriptor s(accept4(socket_.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                       SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (s) set_options(s.get());
  return s;
}

bool is_own_address(const TcpAddress& address) {
  const Descriptor s(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!s) return false;
  set_option(s.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  return bind(s.get(), sockaddr_of(address), address.size) == 0 || errno != EADDRNOTAVAIL;
}

Descriptor connect_tcp(const TcpAddress& to, const std::string& source, Deadline deadline,
                       std::string& why) {
  Descriptor s(socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto failed = [&](int error) {
    why = words_of(error);
    return Descriptor();
  };
  if (!s) return failed(errno);
  if (!source.empty()) {
    const TcpAddress own = look_up(source, 0, AI_NUMERICHOST).front();
    if (bind(s.get(), sockaddr_of(own), own.size) != 0) return failed(errno);
  }
  if (connect(s.get(), sockaddr_of(to), to.size) != 0) {
    if (errno != EINPROGRESS) return failed(errno);
    wait_for_socket(s.get(), POLLOUT, deadline);
    pollfd news{.fd = s.get(), .events = POLLOUT, .revents = 0};
    if (poll(&news, 1, 0) != 1) return failed(ETIMEDOUT);
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return failed(error);
  }
  set_options(s.get());
  return s;
}

TcpAddress own_end(int socket) { return named(getsockname, socket); }
TcpAddress other_end(int socket) { return named(getpeername, socket); }

void wait_for_socket(int socket, short events, Deadline deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd news{.fd = socket, .events = events, .revents = 0};
  poll(&news, 1, static_cast<int>(std::clamp<long long>(left + 1, 0, 1'000'000)));
}

}  // namespace dpt
