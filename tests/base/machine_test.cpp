#include "base/machine.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/units.h"
#include "data/folder.h"

namespace dpt {
namespace {

// A machine with 1000 MiB free, whatever this one has.
void add_machine(const Folder& root) {
  root.write("proc/meminfo", "MemTotal:  2048000 kB\nMemAvailable:  1024000 kB\n");
}

}  // namespace

TEST_CASE("usable memory is what the machine and its control groups leave") {
  const Folder machine;
  add_machine(machine);
  CHECK(usable_memory(machine.path()) == 1000 * kMiB);

  const Folder second;  // version 2: the group has no limit, the one above it has
  add_machine(second);
  second.write("proc/self/cgroup", "0::/above/own\n");
  second.write("sys/fs/cgroup/above/own/memory.max", "max\n");
  second.write("sys/fs/cgroup/above/own/memory.current", "1048576\n");
  second.write("sys/fs/cgroup/above/memory.max", std::to_string(300 * kMiB));
  second.write("sys/fs/cgroup/above/memory.current", std::to_string(200 * kMiB));
  CHECK(usable_memory(second.path()) == 100 * kMiB);
  // Pages of files that can be given back are free.
  second.write("sys/fs/cgroup/above/memory.stat",
               "anon 1\ninactive_file " + std::to_string(50 * kMiB) + "\n");
  CHECK(usable_memory(second.path()) == 150 * kMiB);

  const Folder first;  // version 1, which has a hierarchy for each controller
  add_machine(first);
  first.write("proc/self/cgroup", "3:cpu,cpuacct:/a\n2:memory:/a/b\n");
  first.write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", std::to_string(256 * kMiB));
  first.write("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", std::to_string(56 * kMiB));
  CHECK(usable_memory(first.path()) == 200 * kMiB);

  const Folder container;  // its own group is the root of what it sees
  add_machine(container);
  container.write("proc/self/cgroup", "2:memory:/docker/0123\n");
  container.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(64 * kMiB));
  container.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(80 * kMiB));
  CHECK(usable_memory(container.path()) == 0);
}

TEST_CASE("usable memory is what the limits of this process leave") {
  const Folder root;
  add_machine(root);
  root.write("proc/self/status", "Name:\tx\nVmSize:\t  102400 kB\nVmData:\t  51200 kB\n");
  struct Case {
    __rlimit_resource resource;
    rlim_t bytes;
  };
  // Far above what this process has, so that nothing else fails meanwhile.
  for (const Case c : {Case{RLIMIT_AS, rlim_t{1} << 46}, Case{RLIMIT_DATA, rlim_t{1} << 46}}) {
    rlimit before{};
    REQUIRE(getrlimit(c.resource, &before) == 0);
    if (before.rlim_cur != RLIM_INFINITY) continue;  // somebody limits the tests
    root.write("proc/meminfo", "");
    const rlimit less{c.bytes, before.rlim_max};
    REQUIRE(setrlimit(c.resource, &less) == 0);
    const size_t found = usable_memory(root.path());
    setrlimit(c.resource, &before);
    CHECK(found == c.bytes - (c.resource == RLIMIT_AS ? 100 : 50) * kMiB);
  }
}

TEST_CASE("more memory than there is is refused with what to do") {
  try {
    need_memory(size_t{1} << 60, "the data", "use fewer samples");
    CHECK(false);
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::memory);
    const std::string text = e.what();
    CHECK(text.starts_with("the data needs 1099511627776 MiB, but "));
    CHECK(text.ends_with(" MiB are free; use fewer samples"));
  }
  need_memory(1, "the data", "");
}

TEST_CASE("released pages are no longer counted, and others keep their contents") {
  constexpr size_t kBytes = 64 * kMiB, kNearly = 60 * kMiB;
  std::vector<std::byte> memory(kBytes + 2, std::byte{1});
  const MemoryUse before = memory_use();
  release_pages(std::span(memory).subspan(1, kBytes));
  CHECK(memory.front() == std::byte{1});
  CHECK(memory.back() == std::byte{1});
  if (before.own > 0) CHECK(memory_use().resident + kNearly <= before.resident);
  release_pages(std::span(memory).first(1));  // no whole page
  CHECK(memory.front() == std::byte{1});
}

TEST_CASE("memory_use counts what has been touched, and remembers the peak") {
  constexpr size_t kBytes = 64 * kMiB,
                   kNearly = 60 * kMiB;  // others' pages may come and go meanwhile
  const MemoryUse before = memory_use();
  if (before.own == 0) {  // a kernel without smaps_rollup
    MESSAGE("skipped: /proc/self/smaps_rollup does not tell Pss_Anon");
    return;
  }
  MemoryUse during;
  {
    const std::vector<char> touched(kBytes, 1);
    during = memory_use(getpid());
    CHECK(touched.back() == 1);
  }
  CHECK(during.own >= before.own + kNearly);
  CHECK(during.resident >= before.resident + kNearly);
  CHECK(during.peak >= during.resident);
  CHECK(during.files > 0);
  // What is gone is remembered; the kernel counts the pages of each thread in batches.
  CHECK(memory_use().peak >= before.resident + kNearly);
  CHECK(memory_use(-1).own == 0);  // nobody
}

}  // namespace dpt
