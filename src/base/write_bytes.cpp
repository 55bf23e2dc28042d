#include "base/write_bytes.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include <poll.h>
#include <unistd.h>

#include "base/signals.h"

namespace dpt {
namespace {

constexpr int kTryMs = 50, kGraceMs = 500;
// A pipe that poll() reports as writable accepts this many bytes without blocking (PIPE_BUF on
// Linux).
constexpr size_t kPiece = 4096;

// How long this process has waited for readers since a stop was asked for, in milliseconds.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> g_waited_ms = 0;

// Waits until a write would not block. Returns false if nobody reads and a stop was asked for.
bool wait_until_writable(int fd) noexcept {
  while (true) {
    const bool stopping = stop_asked(), waits = !stopping || g_waited_ms < kGraceMs;
    pollfd out{.fd = fd, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&out, 1, waits ? kTryMs : 0);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // write() reports the error
    if (!waits) return false;
    if (stopping) g_waited_ms += kTryMs;
  }
}

}  // namespace

int write_bytes(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    if (!wait_until_writable(fd)) return EAGAIN;
    const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), kPiece));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

}  // namespace dpt
