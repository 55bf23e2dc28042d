#include "comm/hosts/tcp_store.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/fail.h"
#include "comm/hosts/bytes.h"

namespace dpt {
namespace {

enum class Query : uint8_t { validate = 0, set = 1, get = 3, check = 5, ping = 13 };
constexpr uint32_t kMagic = 0x3C85F7CE, kPing = 0x72747064;  // any number, which comes back
constexpr uint8_t kReady = 0, kNotReady = 1;
constexpr uint64_t kLongestValue = 4096;

class Message {
 public:
  Message& query(Query q) { return bytes_.number(static_cast<uint8_t>(q)), *this; }
  template <class T>
  Message& number(T value) {
    return bytes_.number(value), *this;
  }
  Message& text(std::string_view text) {
    bytes_.number(uint64_t{text.size()});
    return bytes_.raw(std::as_bytes(std::span(text))), *this;
  }
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(bytes_.bytes().data()), bytes_.bytes().size()};
  }

 private:
  ByteWriter bytes_;
};

Descriptor connected(const TcpAddress& at, Deadline deadline) {
  std::string why;
  Descriptor out = connect_tcp(at, "", deadline, why);
  if (!out) fail(Fault::rank, "cannot connect to torchrun's store at {}: {}", at.text(), why);
  return out;
}

}  // namespace

TcpStore::TcpStore(const TcpAddress& at, Deadline deadline)
    : TcpStore(connected(at, deadline), at, deadline) {}

TcpStore::TcpStore(Descriptor socket, const TcpAddress& at, Deadline deadline)
    : at_(at), socket_(std::move(socket)) {
  send(Message().query(Query::validate).number(kMagic).query(Query::ping).number(kPing).bytes(),
       deadline);
  if (receive_number<uint32_t>(deadline) != kPing)
    fail(Fault::rank, "what listens at {} is not torchrun's store", at.text());
}

void TcpStore::set(std::string_view key, std::string_view value, Deadline deadline) {
  send(Message().query(Query::set).text(key).text(value).bytes(), deadline);
}

std::optional<std::string> TcpStore::get(std::string_view key, Deadline deadline) {
  send(Message().query(Query::check).number(uint64_t{1}).text(key).bytes(), deadline);
  const auto answer = receive_number<uint8_t>(deadline);
  if (answer == kNotReady) return std::nullopt;
  if (answer != kReady)
    fail(Fault::rank, "torchrun's store at {} sent an unknown answer, {}", at_.text(), answer);
  send(Message().query(Query::get).text(key).bytes(), deadline);
  const auto size = receive_number<uint64_t>(deadline);
  if (size > kLongestValue)
    fail(Fault::rank, "torchrun's store at {} has a value of {} bytes for '{}'", at_.text(), size,
         key);
  std::string out(size, '\0');
  receive(std::as_writable_bytes(std::span(out)), deadline);
  return out;
}

void TcpStore::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    wait_for_socket(socket_.get(), POLLOUT, deadline);
    const ssize_t n =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    const bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n < 0 && !later)
      fail(Fault::rank, "lost the connection to torchrun's store at {}: {}", at_.text(),
           std::generic_category().message(errno));
    if (later && std::chrono::steady_clock::now() >= deadline)
      fail(Fault::rank, "torchrun's store at {} does not read", at_.text());
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void TcpStore::receive(std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    wait_for_socket(socket_.get(), POLLIN, deadline);
    const ssize_t n = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    const bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n == 0 || (n < 0 && !later))
      fail(Fault::rank, "lost the connection to torchrun's store at {}: {}", at_.text(),
           n == 0 ? "it was closed" : std::generic_category().message(errno));
    if (later && std::chrono::steady_clock::now() >= deadline)
      fail(Fault::rank, "torchrun's store at {} does not answer", at_.text());
    if (n > 0) bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

template <class T>
T TcpStore::receive_number(Deadline deadline) {
  std::array<std::byte, sizeof(T)> bytes{};
  receive(bytes, deadline);
  return ByteReader(bytes).number<T>();
}

}  // namespace dpt
