// Every file of the fuzzers' corpus through its target, so that no build is needed to find that
// one has come back.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

#include "fuzz/targets.h"
#include "paths.h"

namespace dpt::fuzz {

TEST_CASE("the fuzzers' corpus is read or refused, and nothing else") {
  for (const Target& t : targets()) {
    int files = 0;
    const std::string folder = test_file("fuzz/corpus/") + std::string(t.name);
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      CAPTURE(entry.path().string());
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      CHECK_NOTHROW(t.run(std::as_bytes(std::span(bytes))));
      // Cut off and with a bit changed, too: files that are damaged on the way.
      for (size_t cut = 0; cut < bytes.size(); cut += 1 + bytes.size() / 64)
        CHECK_NOTHROW(t.run(std::as_bytes(std::span(bytes).first(cut))));
      for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 64) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ 1 << at % 8);
        CHECK_NOTHROW(t.run(std::as_bytes(std::span(changed))));
      }
      ++files;
    }
    CHECK_MESSAGE(files >= 3, t.name);
  }
}

}  // namespace dpt::fuzz
