#include "base/stdout.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/write_bytes.h"

namespace dpt {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> g_failure = 0;  // errno of the first write that failed
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> g_on_stderr = false;

}  // namespace

void write_stdout(std::string_view bytes) noexcept {
  if (g_on_stderr && notes_are_silent()) return;
  if (g_on_stderr) return write_stderr(bytes);
  if (g_failure != 0) return;
  if (isatty(STDOUT_FILENO)) clear_status();
  const int failure = write_bytes(STDOUT_FILENO, bytes);
  // EAGAIN: after a stop was asked for, output that nobody reads is dropped; that is not a failure.
  if (failure != EAGAIN) g_failure = failure;
}

void print_results_on_stderr(bool on) noexcept { g_on_stderr = on; }

bool results_join_messages() noexcept {
  if (g_on_stderr) return true;
  struct stat out {
  }, err{};
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
         out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

void flush_output() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  int failure = g_failure;
  if (failure == 0 && !flushed) failure = errno != 0 ? errno : EIO;
  if (failure == EPIPE) {  // no step is left to stop after: end like any program does
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  if (failure != 0)
    fail(Fault::failed, "standard output cannot be written: {}",
         std::generic_category().message(failure));
}

}  // namespace dpt
