// libFuzzer's entry, for the target that the build names in DPT_FUZZ_TARGET.
#include <cstdint>
#include <cstdlib>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("DPTRAIN_NO_CACHE", "1", 1);  // NOLINT(concurrency-mt-unsafe): before any thread
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const dpt::fuzz::Target& t : dpt::fuzz::targets())
    if (t.name == DPT_FUZZ_TARGET) t.run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
