#include "comm/shared_memory.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

namespace dpt {
namespace {

bool all_zero(const SharedMemory& memory) {
  return std::all_of(memory.data(), memory.data() + memory.bytes(),
                     [](std::byte b) { return b == std::byte{0}; });
}

TEST_CASE("a mapping is zero, as large as asked, at a 2 MiB boundary") {
  for (const size_t bytes : {size_t{1}, kPage, kHugePage, 5 * kMiB + 3})
    for (const auto pages : {SharedMemory::Pages::on_touch, SharedMemory::Pages::now}) {
      const SharedMemory shared = SharedMemory::create(bytes, pages);
      const SharedMemory own = SharedMemory::create_private(bytes, pages);
      CHECK(shared.fd() >= 0);
      CHECK(own.fd() == -1);
      for (const SharedMemory* memory : {&shared, &own}) {
        CHECK(memory->bytes() == bytes);
        CHECK(reinterpret_cast<uintptr_t>(memory->data()) % kHugePage == 0);
        CHECK(all_zero(*memory));
        memory->data()[bytes - 1] = std::byte{7};
      }
    }
}

TEST_CASE("a child writes where the parent reads, but not in private memory") {
  const SharedMemory shared = SharedMemory::create(100), own = SharedMemory::create_private(100);
  const pid_t child = fork();
  if (child == 0) {
    shared.data()[3] = own.data()[3] = std::byte{42};
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  CHECK(shared.data()[3] == std::byte{42});
  CHECK(own.data()[3] == std::byte{0});
}

TEST_CASE("a second mapping of the descriptor is the same memory") {
  const SharedMemory first = SharedMemory::create(5000);
  const SharedMemory second = SharedMemory::adopt(dup(first.fd()), 5000);
  CHECK(first.data() != second.data());
  first.data()[4999] = std::byte{9};
  CHECK(second.data()[4999] == std::byte{9});
}

TEST_CASE("what is handed over must be large enough and sealed") {
  const SharedMemory small = SharedMemory::create(10);
  CHECK_THROWS_WITH_AS(SharedMemory::adopt(dup(small.fd()), 11),
                       "the shared memory that rank 0 handed over has 10 bytes, not 11", Error);
  const int open = memfd_create("unsealed", MFD_CLOEXEC);
  REQUIRE(ftruncate(open, 100) == 0);
  CHECK_THROWS_AS(SharedMemory::adopt(open, 100), Error);
  CHECK(fcntl(open, F_GETFD) == -1);  // taken, also when it throws
  CHECK(ftruncate(small.fd(), 1) == -1);
}

TEST_CASE("more than the machine has is refused before anything is taken") {
  const size_t huge = size_t{1} << 46;  // 64 TiB
  for (const bool shared : {true, false}) try {
      shared ? SharedMemory::create(huge) : SharedMemory::create_private(huge);
      FAIL("no error");
    } catch (const Error& e) {
      CHECK(e.fault() == Fault::memory);
      CHECK(std::string(e.what()).find("67108864.0 MiB") != std::string::npos);
      CHECK(std::string(e.what()).find("smaller model or batch") != std::string::npos);
    }
}

TEST_CASE("moving moves the mapping") {
  SharedMemory first = SharedMemory::create(100);
  std::byte* const data = first.data();
  const SharedMemory second = std::move(first);
  CHECK(second.data() == data);
  first = SharedMemory::create(50);
  CHECK(first.bytes() == 50);
  CHECK(second.bytes() == 100);
}

}  // namespace
}  // namespace dpt
