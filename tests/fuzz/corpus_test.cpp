// Every file of the fuzzers' corpus through its target, so that no build is needed to find that
// one has come back.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/units.h"
#include "data/folder.h"
#include "data/peak_growth.h"
#include "fuzz/targets.h"
#include "paths.h"
#include "sanitizers.h"

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

namespace {

// Damages as editors, networks and attackers do: bits, numbers that are large, parts that are gone,
// doubled or swapped.
std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  for (size_t times = 1 + below(4); times > 0; --times) {
    const size_t at = below(bytes.size()), length = 1 + below(16);
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.replace(at, length, length, below(2) == 0 ? '\xff' : '\x7f');
        break;
      case 2:
        bytes.replace(at, below(3), "999999999999999999");
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), 8 * length));
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

TEST_CASE(
    "100 damaged files of each reader take no more memory and time than files of their size") {
  std::mt19937 random(1);
  for (const Target& t : targets()) {
    CAPTURE(std::string(t.name));
    std::vector<std::string> seeds;
    for (const auto& entry :
         std::filesystem::directory_iterator(test_file("fuzz/corpus/") + std::string(t.name)))
      seeds.push_back(read_file(entry.path().string()));
    std::ranges::sort(seeds);  // folders are listed in any order
    for (int i = 0; i < 100; ++i) {
      const std::string bytes = mutated(seeds[random() % seeds.size()], random);
      CAPTURE(i);
      double seconds = 0;
      const auto run = [&] {
        const double begin = cpu_s();
        CHECK_NOTHROW(t.run(std::as_bytes(std::span(bytes))));
        seconds = cpu_s() - begin;
      };
      if (kSanitized) {  // where measuring takes longer than reading
        run();
        continue;
      }
      const size_t grown = peak_growth(run);
      // CPU time: a busy machine adds nothing. A file of some kB takes a millisecond.
      CHECK(seconds < 1);
      CHECK(grown < kSanitizerFactor * 256 * kMiB);
    }
  }
}

}  // namespace dpt::fuzz
