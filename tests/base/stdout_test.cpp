#include "base/stdout.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/signals.h"
#include "base/write_bytes.h"

namespace dpt {
namespace {

// How a child ends that has this as its standard output: its code, or 1000 + signal.
template <class Body>
int code_with_output(int fd, Body body) {
  std::fflush(nullptr);  // or the child would print it again
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    ::dup2(fd, STDOUT_FILENO);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read = ends[0], write = ends[1];
  }
  ~Pipe() {
    if (read >= 0) ::close(read);
    ::close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
};

TEST_CASE("an output that cannot be written throws at the end, and not before") {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  const auto body = [] {
    for (int i = 0; i < 1000; ++i) print_stdout("Epoch [{}/1000], Loss: 0.1234\n", i);
    try {
      flush_output();
    } catch (const Error& e) {
      return std::string(e.what()) == "standard output cannot be written: No space left on device"
                 ? 7
                 : 8;
    }
    return 9;
  };
  CHECK(code_with_output(full, body) == 7);
  ::close(full);
}

TEST_CASE("all of a long text arrives") {
  const Pipe pipe;
  const std::string text(10000, 'x');
  CHECK(code_with_output(pipe.write, [&] {
          write_stdout(text);
          flush_output();
          return 0;
        }) == 0);
  std::string read(20000, '\0');
  CHECK(::read(pipe.read, read.data(), read.size()) == 10000);
  CHECK(read.starts_with(text));
}

TEST_CASE("an output without a reader is a signal, to which a run may answer") {
  Pipe pipe;
  ::close(pipe.read);
  pipe.read = -1;
  CHECK(code_with_output(pipe.write, [] {
          write_stdout("x");
          return 9;
        }) == 1000 + SIGPIPE);
  CHECK(code_with_output(pipe.write, [] {
          std::atomic<int> word = 0;
          const StopSignals stop(word);
          write_stdout("x");
          return word.load();
        }) == SIGPIPE);
}

TEST_CASE("a full pipe is waited for, but not for long once a stop is asked for") {
  const Pipe pipe;
  REQUIRE(::fcntl(pipe.write, F_SETFL, O_NONBLOCK) == 0);
  const std::string block(4096, 'x');
  while (::write(pipe.write, block.data(), block.size()) > 0) continue;
  REQUIRE(::fcntl(pipe.write, F_SETFL, 0) == 0);
  // The signal comes while the write waits, by a child of the child.
  CHECK(code_with_output(pipe.write, [] {
          std::atomic<int> word = 0;
          const StopSignals stop(word);
          const pid_t self = ::getpid();
          if (::fork() == 0) {
            ::usleep(20'000);
            ::kill(self, SIGTERM);
            ::_exit(0);
          }
          write_stdout("dropped");
          const int dropped = write_bytes(STDOUT_FILENO, "dropped");
          flush_output();  // what is dropped so is no error
          return dropped == EAGAIN && word == SIGTERM ? 0 : 1;
        }) == 0);
}

}  // namespace
}  // namespace dpt
