#include "base/stderr.h"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <pthread.h>
#include <unistd.h>

#include "base/utf8.h"
#include "base/write_bytes.h"

namespace dpt {
namespace {

// While one lives, this thread's writes to a pipe without a reader fail with EPIPE and raise no
// SIGPIPE: messages are for whoever reads them, and their end is not the run's.
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
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);  // the one that the write raised
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

}  // namespace

std::string escape_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    const bool break_or_tab = character == "\n" || character == "\t";
    if (length != 0 && (break_or_tab || !is_control(character)))
      out += character;
    else
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(character.size());
  }
  return out;
}

void write_stderr(std::string_view bytes) noexcept {
  const int before = errno;
  {
    const NoSigpipe quiet;
    write_bytes(STDERR_FILENO, bytes);
  }
  errno = before;
}

}  // namespace dpt
