#include "base/stderr.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/utf8.h"
#include "base/write_bytes.h"

namespace dpt {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

// A pipe that poll() reports as writable takes this many bytes at once (PIPE_BUF on Linux).
constexpr size_t kAtomicBytes = 4096;

// Whether the terminal's last line may hold a status line.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> g_status = false;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> g_silent = false;

// During its lifetime, writes of this thread to a pipe without a reader fail with EPIPE instead of
// raising SIGPIPE: losing the reader of messages must not end a run.
class NoSigpipe {
 public:
  NoSigpipe() noexcept {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec now{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);  // the one that our write raised
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

void write_all(std::string_view bytes) noexcept {
  const int before = errno;
  {
    const NoSigpipe quiet;
    write_bytes(STDERR_FILENO, bytes);
  }
  errno = before;
}

}  // namespace

std::string escape_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    const bool break_or_tab = character == "\n" || character == "\t";
    if (length != 0 && (break_or_tab || !is_unprintable(character)))
      out += character;
    else
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(character.size());
  }
  return out;
}

void write_stderr(std::string_view bytes) noexcept {
  if (g_status.load(std::memory_order_relaxed) && g_status.exchange(false)) write_all(kEraseLine);
  write_all(bytes);
}

bool write_stderr_without_waiting(std::string_view bytes) noexcept {
  pollfd out{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&out, 1, 0) != 1) return false;
  const bool erases = g_status.load(std::memory_order_relaxed) && g_status.exchange(false);
  std::string text(erases ? kEraseLine : "");
  write_all(text.append(bytes).substr(0, kAtomicBytes));
  return true;
}

void silence_notes() noexcept { g_silent = true; }
bool notes_are_silent() noexcept { return g_silent; }

bool has_status_line() {
  if (g_silent) return false;
  const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
}

void write_status(std::string_view line) {
  const std::string text = std::string(kEraseLine).append(line);
  g_status = true;
  write_all(text);  // a single write, so that the erased line does not flicker
  g_status = true;  // another thread may have written and cleared it meanwhile
}

void clear_status() noexcept {
  if (g_status.load(std::memory_order_relaxed)) write_stderr("");
}

void expect_status() noexcept { g_status = true; }

}  // namespace dpt
