#include "comm/shared_memory.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

// How many of the mapping's pages are in memory; -1: there is no such mapping.
int resident_pages(const void* data, size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), count = (bytes + page - 1) / page;
  std::vector<unsigned char> resident(count);
  if (mincore(const_cast<void*>(data), bytes, resident.data()) != 0) return -1;
  return static_cast<int>(
      std::ranges::count_if(resident, [](unsigned char c) { return (c & 1) != 0; }));
}

TEST_CASE("pages are there at once where that is asked, and given back at the end") {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = 5 * page + 3;
  for (const bool shared : {true, false}) {
    CAPTURE(shared);
    const auto made = [&](SharedMemory::Pages pages) {
      return shared ? SharedMemory::create(bytes, pages)
                    : SharedMemory::create_private(bytes, pages);
    };
    const void* gone = nullptr;
    {
      const SharedMemory now = made(SharedMemory::Pages::now);
      CHECK(resident_pages(now.data(), bytes) == 6);
      CHECK(resident_pages(now.data() + 6 * page, page) == -1);  // not more than was asked for
      gone = now.data();
    }
    CHECK(resident_pages(gone, bytes) == -1);
    const SharedMemory later = made(SharedMemory::Pages::on_touch);
    CHECK(resident_pages(later.data(), bytes) == 0);
  }
  int fd = -1;
  {
    const SharedMemory memory = SharedMemory::create(bytes);
    fd = memory.fd();
  }
  CHECK(fcntl(fd, F_GETFD) == -1);
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

TEST_CASE("memory that the system refuses is an error with its reason") {
  rlimit files{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &files) == 0);
  const rlimit small{4096, files.rlim_max};
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  std::fflush(stdout);  // what tests have printed so far is not to meet that limit
  setrlimit(RLIMIT_FSIZE, &small);
  std::string said;
  try {
    SharedMemory::create(3 << 20);
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::memory);
    said = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &files);
  std::signal(SIGXFSZ, before);
  CHECK(said ==
        "ranks share 3.0 MiB of memory, which counts as a file and exceeds the limit on file size; "
        "raise the limit (ulimit -f)");
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
