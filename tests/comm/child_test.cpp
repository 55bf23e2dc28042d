#include "comm/child.h"

#include <csignal>

#include <doctest/doctest.h>
#include <unistd.h>

#include "comm/shared_memory.h"

namespace dpt {

TEST_CASE("a child's code comes back, and its memory is its own") {
  const SharedMemory memory = SharedMemory::create(4096);
  int own = 1;
  const pid_t parent = getpid();
  CHECK(run_in_child([&] {
          own = 2;
          memory.data()[0] = std::byte{7};
          return getppid() == parent ? 5 : 1;
        }) == 5);
  CHECK(own == 1);
  CHECK(memory.data()[0] == std::byte{7});
  CHECK(run_in_child([] { return 0; }) == 0);
}

TEST_CASE("a child that is killed gives 128 and the signal") {
  CHECK(run_in_child([] { return std::raise(SIGKILL); }) == 128 + SIGKILL);
}

}  // namespace dpt
