#include "data/prefetch.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <random>

#include "folder.h"

namespace dpt {
namespace {

// Samples of three bytes: the number, its square, and 7. Some take long; number `bad` fails.
struct Squares : SampleReader {
  explicit Squares(uint32_t bad = 1000) : bad_(bad) {}
  void read(uint32_t row, std::span<std::byte> out) const override {
    ++reads;
    if (row % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(row * 7 % 300));
    if (row == bad_) throw Error(Fault::data, "sample is damaged");
    out[0] = static_cast<std::byte>(row);
    out[1] = static_cast<std::byte>(row * row);
    out[2] = std::byte{7};
  }
  uint32_t bad_;
  mutable std::atomic<int> reads = 0;
};

Dataset squares(std::shared_ptr<const SampleReader> reader) {
  Dataset d;
  d.inputs = {{DType::u8, {200, 3}}, nullptr};
  d.reader = std::move(reader);
  return d;
}

void check_samples(const std::byte* got, std::span<const uint32_t> rows) {
  for (const uint32_t row : rows) {
    CHECK(got[0] == static_cast<std::byte>(row));
    CHECK(got[1] == static_cast<std::byte>(row * row));
    CHECK(got[2] == std::byte{7});
    got += 3;
  }
}

const std::vector<std::vector<uint32_t>> kBatches = {{}, {5, 3, 199}, {0}, {}, {7, 7, 8, 10, 15},
                                                     {}, {20, 21},    {1}};
void never() {}

TEST_CASE("every batch has its samples, for any number of threads and takers, in several passes") {
  const auto reader = std::make_shared<Squares>();
  const Dataset d = squares(reader);
  for (const int threads : {1, 2, 7}) {
    Prefetch prefetch(d, threads);
    for (int pass = 0; pass < 20; ++pass) {
      prefetch.begin(kBatches);
      // Two that take half of each batch, each at its own speed.
      const auto taker = [&](size_t half) {
        for (size_t b = 0; b < kBatches.size(); ++b) {
          const std::span<const uint32_t> rows = kBatches[b];
          const size_t middle = rows.size() / 2;
          const auto mine = half == 0 ? rows.first(middle) : rows.subspan(middle);
          if (mine.empty()) continue;
          check_samples(prefetch.take(b, never) + (half == 0 ? 0 : middle) * 3, mine);
          if ((b + half) % 3 == 0) std::this_thread::yield();
          prefetch.give_back(b, mine.size());
        }
      };
      std::thread other(taker, 1);
      taker(0);
      other.join();
    }
  }
}

TEST_CASE("two batches are made ahead and no more, and a pass may end early") {
  const auto reader = std::make_shared<Squares>();
  const Dataset d = squares(reader);
  Prefetch prefetch(d, 3);
  prefetch.begin({{1, 2}, {3}, {4, 6}, {8}});
  prefetch.take(1, never);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(reader->reads == 3);
  prefetch.begin({{9, 11}});
  check_samples(prefetch.take(0, never), std::vector<uint32_t>{9, 11});
  CHECK(reader->reads == 5);
}

TEST_CASE("what reading throws is thrown to whoever waits, and who waits may give up") {
  const Dataset d = squares(std::make_shared<Squares>(15));
  Prefetch prefetch(d, 2);
  prefetch.begin({{1}, {2, 15}});
  CHECK(has(data_error([&] { prefetch.take(1, never); }), "sample is damaged"));
  prefetch.begin({{1}, {2}, {3}});  // the third is not begun before the first is given back
  CHECK_THROWS_AS(prefetch.take(2, [] { throw std::runtime_error("given up"); }),
                  std::runtime_error);
}

}  // namespace
}  // namespace dpt
