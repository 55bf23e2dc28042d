#include "base/stack.h"

#include <thread>

#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

namespace dpt {
namespace {

// What prepare_stacks() does under this limit, in a child: 0: it returned, else the fault.
int prepared(rlim_t soft, rlim_t hard, rlim_t expected) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{soft, hard};
    setrlimit(RLIMIT_STACK, &limit);
    try {
      prepare_stacks();
    } catch (const Error& e) {
      ::_exit(static_cast<int>(e.fault()));
    }
    rlimit now{};
    getrlimit(RLIMIT_STACK, &now);
    ::_exit(now.rlim_cur == expected ? 0 : 99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

TEST_CASE("a stack that is too small is raised, or refused where that is not allowed") {
  CHECK(prepared(512 * kKiB, 16384 * kKiB, 8192 * kKiB) == 0);
  CHECK(prepared(512 * kKiB, 2048 * kKiB, 2048 * kKiB) == 0);
  CHECK(prepared(16384 * kKiB, 16384 * kKiB, 16384 * kKiB) == 0);
  CHECK(prepared(512 * kKiB, 512 * kKiB, 0) == static_cast<int>(Fault::memory));
}

TEST_CASE("threads have stacks of their own size") {
  pthread_attr_t before;
  REQUIRE(pthread_getattr_default_np(&before) == 0);
  prepare_stacks();
  size_t size = 0;
  std::thread([&] {
    pthread_attr_t mine;
    pthread_getattr_np(pthread_self(), &mine);
    pthread_attr_getstacksize(&mine, &size);
    pthread_attr_destroy(&mine);
  }).join();
  CHECK(size >= 8192 * kKiB);
  CHECK(pthread_setattr_default_np(&before) == 0);
  pthread_attr_destroy(&before);
}

}  // namespace
}  // namespace dpt
