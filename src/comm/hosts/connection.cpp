#include "comm/hosts/connection.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/socket.h>

namespace dpt {
namespace {

[[noreturn]] void lost(int error) {
  throw ConnectionLost(std::generic_category().message(error),
                       error == ECONNRESET || error == EPIPE);
}

bool later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void Connection::use_keys(const Digest& sending, const Digest& receiving) {
  writer_.use_key(sending);
  reader_.use_key(receiving);
}

void Connection::add(std::vector<std::byte> frame) {
  queued_ += frame.size();
  queue_.push_back(std::move(frame));
}

void Connection::send(FrameType type, std::span<const std::byte> payload) {
  add(writer_.frame(type, payload));
}

void Connection::send(FrameType type, std::span<const std::byte> payload,
                      const Digest& payload_digest) {
  add(writer_.frame(type, payload, payload_digest));
}

void Connection::flush() {
  while (!queue_.empty()) {
    const std::span<const std::byte> rest =
        std::span<const std::byte>(queue_.front()).subspan(written_);
    const ssize_t n = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && later(errno)) return;
    if (n < 0) lost(errno);
    written_ += static_cast<size_t>(n);
    queued_ -= static_cast<size_t>(n);
    if (written_ < queue_.front().size()) continue;
    queue_.pop_front();
    written_ = 0;
  }
}

std::optional<Frame> Connection::receive() {
  for (;;) {
    const std::span<std::byte> space = reader_.space();
    const ssize_t n = recv(socket_.get(), space.data(), space.size(), MSG_DONTWAIT);
    if (n < 0 && later(errno)) return std::nullopt;
    if (n < 0) lost(errno);
    if (n == 0) throw ConnectionLost("the connection was closed", true);
    received_ += static_cast<uint64_t>(n);
    try {
      if (std::optional<Frame> frame = reader_.take(static_cast<size_t>(n))) return frame;
    } catch (const Error& e) {
      throw ConnectionLost(e.what(), false);
    }
  }
}

}  // namespace dpt
