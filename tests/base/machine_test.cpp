#include "base/machine.h"

#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

namespace dpt {

TEST_CASE("memory_use counts what has been touched, and remembers the peak") {
  constexpr size_t kBytes = 64 << 20,
                   kNearly = 60 << 20;  // others' pages may come and go meanwhile
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
