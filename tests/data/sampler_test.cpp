#include "data/sampler.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/sha256.h"

namespace dpt {
namespace {

using Indices = std::vector<uint32_t>;

std::string sha256_of(const Indices& order) {
  const std::vector<int64_t> wide(order.begin(), order.end());  // as torch has them
  return Sha256().update(std::span<const int64_t>(wide)).hex();
}

// Three epochs after the making of a model that draws `weights` uniform numbers.
struct LoaderCase {
  uint64_t seed;
  size_t weights;
  int64_t samples, validation;
  std::string sha256[3];
};

// From tests/fixtures/sampler_orders.json; its models are Linear layers.
TEST_CASE("a shuffling loader gives torch's orders, epoch after epoch") {
  const LoaderCase cases[] = {
      {0,
       785 * 200 + 201 * 200 + 201 * 10,
       60000,
       0,
       {"4c5e36be290d599f5b0005e08efa081d755370209bb0047bb09c8a62594793c0",
        "1e058602d756d63267c4bb585e59e3fc334ff0f602f4a5868fd87825e851d7e3",
        "96b63457f2f1f4acfd8de62567929e04d63c7f395c7961808f4a09949df5a505"}},
      {1,
       785 * 200 + 201 * 200 + 201 * 10,
       60000,
       10000,
       {"02bbc5923d79496b74091a61f05e4cacc297b2b43385eb86fbcc0a59dc390fea",
        "9ae442093883f6e7e9d1567cd65233e410fd2b0cc2a9bba630f578629d1b4a5a",
        "f4f4a382e11fba82c639b3dc8f184de45fce1d2036c4208c62f74b46f456b9e6"}},
      {0,
       6 * 2,
       30,
       0,
       {"6a4cde7adcdb0ec65873cd77d97d6813a8460e60bff13d1817ec11bc6f465aa3",
        "84add9b2d2179ae140b973476d9c69ca4b6900c0a8d3efbf494b88abad124b87",
        "98c0be61ffd192915398d85156065a1c9255fa1471e543331f031cff5439d8c0"}}};
  for (const LoaderCase& c : cases) {
    Generator g(c.seed);
    for (size_t i = 0; i < c.weights; ++i) g.next();
    for (const std::string& expected : c.sha256) {
      CHECK(sha256_of(loader_order(c.samples, true, g).indices) == expected);
      if (c.validation > 0) loader_order(c.validation, false, g);
    }
  }
}

TEST_CASE("a cached normal of the model does not reach the order") {
  Generator g(3);
  std::vector<float> embedding(3 * 5);
  g.normal_(embedding, 0, 1);
  CHECK(sha256_of(loader_order(17, true, g).indices) ==
        "4051d65daebe618b42637d70054bde0b76d5288202e8d479b9060e811646e919");
}

TEST_CASE("a loader without shuffle takes two words and keeps the order") {
  Generator loader(5), words(5);
  const Order order = loader_order(4, false, loader);
  CHECK(order.indices == Indices{0, 1, 2, 3});
  words.next64();
  CHECK(loader.next() == words.next());
}

TEST_CASE("the reproducible order is torch.randperm of seed + epoch") {
  CHECK(reproducible_order(10, true, 0, 1).indices == Indices{5, 6, 1, 2, 0, 8, 9, 3, 7, 4});
  CHECK(reproducible_order(10, true, 1, 0).indices == reproducible_order(10, true, 0, 1).indices);
  CHECK(reproducible_order(3, false, 9, 9).indices == Indices{0, 1, 2});
  CHECK(sha256_of(reproducible_order(60000, true, 0, 0).indices) ==
        "4c226c41bdd65c9e11fe47eba8358cefb5c375b9699b1c912586a2125168af52");
}

TEST_CASE("too many samples to shuffle are refused") {
  CHECK_THROWS_AS(reproducible_order(int64_t{1} << 32, true, 0, 0), Error);
}

TEST_CASE("padded, the order is torch's DistributedSampler's") {
  const Deal deal{.samples = 11, .ranks = 2, .rest = Deal::Rest::pad};
  CHECK(distributed_order(deal, 0, true, 0, 1).indices == Indices{0, 2, 7, 4, 1, 5});
  CHECK(distributed_order(deal, 1, true, 0, 1).indices == Indices{10, 3, 6, 8, 9, 0});
  // From tests/fixtures/sampler_orders.json.
  const Deal large{.samples = 60001, .ranks = 4, .rest = Deal::Rest::pad};
  CHECK(sha256_of(distributed_order(large, 3, true, 0, 3).indices) ==
        "9afb8c4fabb1d810432ae1504589c117dfd7390deadc0d70bdc7870eeaadfd0b");
  // More padding than samples: the list is repeated.
  const Deal few{.samples = 3, .ranks = 8, .rest = Deal::Rest::pad};
  Indices all;
  for (int r = 0; r < 8; ++r) all.push_back(distributed_order(few, r, false, 0, 0).indices.at(0));
  CHECK(all == Indices{0, 1, 2, 0, 1, 2, 0, 1});
}

TEST_CASE("exact, torch's order without its padding") {
  const Deal deal{.samples = 11, .ranks = 2};
  CHECK(distributed_order(deal, 0, true, 0, 1).indices == Indices{0, 2, 7, 4, 1, 5});
  CHECK(distributed_order(deal, 1, true, 0, 1).indices == Indices{10, 3, 6, 8, 9});
}

TEST_CASE("dropping, torch's drop_last") {
  // 11 on 3 ranks: ceil((11 - 3) / 3) = 3 each, the last two left out.
  const Deal deal{.samples = 11, .ranks = 3, .rest = Deal::Rest::drop};
  CHECK(distributed_order(deal, 0, false, 0, 4).indices == Indices{0, 3, 6});
  CHECK(distributed_order(deal, 2, false, 0, 4).indices == Indices{2, 5, 8});
  // From tests/fixtures/sampler_orders.json.
  const Deal large{.samples = 60001, .ranks = 4, .rest = Deal::Rest::drop};
  CHECK(sha256_of(distributed_order(large, 1, true, 0, 3).indices) ==
        "eaa313afab823938242f6a19bf9a0cb3c5c93fecd7af9359039b15e54dbd912f");
}

TEST_CASE("no samples, no steps") {
  for (const auto rest : {Deal::Rest::exact, Deal::Rest::pad, Deal::Rest::drop}) {
    const Batches none{.deal = {.samples = 0, .ranks = 2, .rest = rest}, .batch = 3};
    CHECK(none.steps() == 0);
    CHECK(distributed_order(none.deal, 1, true, 0, 0).indices.empty());
  }
}

// How often each sample is taken in an epoch, and what must hold for every step on the way.
std::map<uint32_t, int> taken(const Batches& b) {
  std::vector<Indices> orders;
  for (int r = 0; r < b.deal.ranks; ++r) {
    orders.push_back(distributed_order(b.deal, r, true, 1, 2).indices);
    REQUIRE(static_cast<int64_t>(orders.back().size()) == b.deal.of(r));
  }
  std::map<uint32_t, int> count;
  for (int64_t step = 0; step < b.steps(); ++step) {
    int64_t global = 0;
    for (int r = 0; r < b.deal.ranks; ++r) {
      const RowRange rows = b.rows(r, step);
      REQUIRE(rows.count() <= b.batch);
      if (b.drop_last) REQUIRE(rows.count() == b.batch);
      REQUIRE(b.place(r, step) == global);
      global += rows.count();
      for (int64_t i = rows.begin; i < rows.end; ++i)
        ++count[orders[static_cast<size_t>(r)].at(static_cast<size_t>(i))];
    }
    REQUIRE(global == b.global_count(step));
    REQUIRE(global > 0);
  }
  return count;
}

TEST_CASE("every small case takes each sample as often as it should") {
  for (int64_t n = 1; n <= 17; ++n)
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (int64_t batch = 1; batch <= 6; ++batch) {
        CAPTURE(n);
        CAPTURE(ranks);
        CAPTURE(batch);
        const auto cut = [&](Deal::Rest rest, bool drop_last) {
          return Batches{{n, ranks, rest}, batch, drop_last};
        };
        const auto sum = [](const std::map<uint32_t, int>& count) {
          int64_t total = 0;
          for (const auto& [sample, times] : count) total += times;
          return total;
        };

        const std::map<uint32_t, int> exact = taken(cut(Deal::Rest::exact, false));
        CHECK(static_cast<int64_t>(exact.size()) == n);
        CHECK(sum(exact) == n);

        const std::map<uint32_t, int> padded = taken(cut(Deal::Rest::pad, false));
        CHECK(static_cast<int64_t>(padded.size()) == n);
        CHECK(sum(padded) == (n + ranks - 1) / ranks * ranks);

        const std::map<uint32_t, int> dropped = taken(cut(Deal::Rest::drop, false));
        CHECK(sum(dropped) == n / ranks * ranks);
        CHECK(static_cast<int64_t>(dropped.size()) == sum(dropped));

        // Only whole global batches; the same number for every rank.
        const std::map<uint32_t, int> whole = taken(cut(Deal::Rest::exact, true));
        CHECK(sum(whole) == n / ranks / batch * batch * ranks);
        CHECK(static_cast<int64_t>(whole.size()) == sum(whole));
      }
}

}  // namespace
}  // namespace dpt
