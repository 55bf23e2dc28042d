#include "base/stderr.h"

#include <cerrno>
#include <csignal>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dpt {
namespace {

TEST_CASE("control bytes of messages are escaped, text of any language is not") {
  CHECK(escape_controls("loss 0.1\n\tnext line") == "loss 0.1\n\tnext line");
  CHECK(escape_controls("Größe, 大きさ, 😀") == "Größe, 大きさ, 😀");
  CHECK(escape_controls("a\x1b[2Jb\rc\x07") == "a\\x1b[2Jb\\x0dc\\x07");
  CHECK(escape_controls(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(escape_controls("no\u202eyes") == "no\\xe2\\x80\\xaeyes");
  CHECK(escape_controls("\u202a\u2069") == "\\xe2\\x80\\xaa\\xe2\\x81\\xa9");
  CHECK(escape_controls("\u2029\u202f\u2065\u206a") == "\u2029\u202f\u2065\u206a");
  CHECK(escape_controls("\xc2\x9b"
                        "2J") == "\\xc2\\x9b2J");      // U+009B, CSI in one character
  CHECK(escape_controls("\xff\xc3") == "\\xff\\xc3");  // no UTF-8, cut short
  CHECK(escape_controls("\xc0\x9b\xed\xa0\x80") ==
        "\\xc0\\x9b\\xed\\xa0\\x80");  // overlong, a surrogate
}

TEST_CASE("a standard error that cannot be written costs the message and nothing else") {
  const int kept = ::dup(STDERR_FILENO);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  ::dup2(full, STDERR_FILENO);
  errno = EAGAIN;
  CHECK_NOTHROW(print_stderr("{} is lost\n", "this"));
  CHECK(errno == EAGAIN);
  ::dup2(kept, STDERR_FILENO);
  ::close(full);
  ::close(kept);
}

TEST_CASE("a reader of standard error that goes away does not end the process") {
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  ::close(pipe[0]);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    ::dup2(pipe[1], STDERR_FILENO);
    print_stderr("nobody reads this\n");
    sigset_t pending, mask;
    sigpending(&pending);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    ::_exit(sigismember(&pending, SIGPIPE) == 0 && sigismember(&mask, SIGPIPE) == 0 ? 0 : 1);
  }
  ::close(pipe[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace dpt
