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

// WeightedRandomSampler(1 / counts[labels], 12) of PyTorch 2.15.
TEST_CASE("weighted draws are torch.multinomial's with replacement") {
  const std::vector<int32_t> labels{0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2};
  const WeightedDraws draws(class_weights(labels, {}));
  Generator five(5);
  const Order order = draws.order(five, true);
  CHECK(order.indices == Indices{7, 4, 6, 5, 4, 10, 7, 8, 10, 6, 6, 5});
  CHECK(order.repeats == Indices{0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 2, 1});
  Generator loader(3);  // torch.manual_seed(3), and a DataLoader for each epoch
  draw_base_seed(loader);
  CHECK(draws.order(loader, false).indices == Indices{5, 9, 3, 9, 7, 3, 6, 6, 9, 3, 7, 6});
  draw_base_seed(loader);
  CHECK(draws.order(loader, false).indices == Indices{11, 1, 2, 7, 11, 2, 7, 7, 0, 4, 6, 1});
  CHECK(loader.next_double() == doctest::Approx(0.4325).epsilon(1e-4));  // as it was printed
  std::vector<int32_t> many;
  for (int32_t i = 0; i < 100003; ++i) many.push_back(i % 7 % 3);
  Generator one(1);
  CHECK(sha256_of(WeightedDraws(class_weights(many, {})).order(one, true).indices) ==
        "8ea08b0bf78db14212d629d6230bf290c299d55f599431c3b755e10b42282c72");
}

TEST_CASE("class weights are those of the rows that are trained on") {
  const std::vector<int32_t> labels{0, 1, 1, 2, -100};
  const std::vector<uint32_t> rows{2, 1, 0};
  CHECK(class_weights(labels, rows) == std::vector<double>{0.5, 0.5, 1});
  CHECK(class_weights(labels, {}) == std::vector<double>{1, 0.5, 0.5, 1, 1});
}

TEST_CASE("ranks share any order as they share a permutation") {
  const Order all{.indices = {4, 4, 0, 2, 4}, .repeats = {0, 1, 0, 0, 2}};
  const Order first = share_of(all, {.samples = 5, .ranks = 2}, 0);
  CHECK(first.indices == Indices{4, 0, 4});
  CHECK(first.repeats == Indices{0, 0, 2});  // as the whole order has them
  const Order second = share_of(all, {.samples = 5, .ranks = 2}, 1);
  CHECK(second.indices == Indices{4, 2});
  CHECK(second.repeats == Indices{1, 0});
  CHECK(share_of({.indices = {1, 0}}, {.samples = 2, .ranks = 2}, 1).repeats.empty());
}

TEST_CASE("too many samples to shuffle are refused") {
  CHECK_THROWS_AS(reproducible_order(int64_t{1} << 32, true, 0, 0), Error);
}

TEST_CASE("padded, the order is torch's DistributedSampler's") {
  const SampleAssignment assignment{
      .samples = 11, .ranks = 2, .remainder = SampleAssignment::Remainder::pad};
  CHECK(distributed_order(assignment, 0, true, 0, 1).indices == Indices{0, 2, 7, 4, 1, 5});
  CHECK(distributed_order(assignment, 1, true, 0, 1).indices == Indices{10, 3, 6, 8, 9, 0});
  // More padding than samples: the list is repeated.
  const SampleAssignment few{
      .samples = 3, .ranks = 8, .remainder = SampleAssignment::Remainder::pad};
  Indices all;
  for (int r = 0; r < 8; ++r) all.push_back(distributed_order(few, r, false, 0, 0).indices.at(0));
  CHECK(all == Indices{0, 1, 2, 0, 1, 2, 0, 1});
}

TEST_CASE("exact, torch's order without its padding") {
  const SampleAssignment assignment{.samples = 11, .ranks = 2};
  CHECK(distributed_order(assignment, 0, true, 0, 1).indices == Indices{0, 2, 7, 4, 1, 5});
  CHECK(distributed_order(assignment, 1, true, 0, 1).indices == Indices{10, 3, 6, 8, 9});
}

TEST_CASE("dropping, torch's drop_last") {
  // 11 on 3 ranks: ceil((11 - 3) / 3) = 3 each, the last two left out.
  const SampleAssignment assignment{
      .samples = 11, .ranks = 3, .remainder = SampleAssignment::Remainder::drop};
  CHECK(distributed_order(assignment, 0, false, 0, 4).indices == Indices{0, 3, 6});
  CHECK(distributed_order(assignment, 2, false, 0, 4).indices == Indices{2, 5, 8});
}

TEST_CASE("no samples, no steps") {
  for (const auto rest : {SampleAssignment::Remainder::exact, SampleAssignment::Remainder::pad,
                          SampleAssignment::Remainder::drop}) {
    const Batches none{.assignment = {.samples = 0, .ranks = 2, .remainder = rest}, .batch = 3};
    CHECK(none.steps() == 0);
    CHECK(distributed_order(none.assignment, 1, true, 0, 0).indices.empty());
  }
}

// How often each sample is taken in an epoch, and what must hold for every step on the way.
std::map<uint32_t, int> taken(const Batches& b) {
  std::vector<Indices> orders;
  for (int r = 0; r < b.assignment.ranks; ++r) {
    orders.push_back(distributed_order(b.assignment, r, true, 1, 2).indices);
    REQUIRE(static_cast<int64_t>(orders.back().size()) == b.assignment.of(r));
  }
  std::map<uint32_t, int> count;
  for (int64_t step = 0; step < b.steps(); ++step) {
    int64_t global = 0;
    for (int r = 0; r < b.assignment.ranks; ++r) {
      const RowRange rows = b.rows(r, step);
      REQUIRE(rows.count() <= b.batch);
      if (b.drop_last) REQUIRE(rows.count() == b.batch);
      REQUIRE(b.offset(r, step) == global);
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
        const auto cut = [&](SampleAssignment::Remainder rest, bool drop_last) {
          return Batches{{n, ranks, rest}, batch, drop_last};
        };
        const auto sum = [](const std::map<uint32_t, int>& count) {
          int64_t total = 0;
          for (const auto& [sample, times] : count) total += times;
          return total;
        };

        const std::map<uint32_t, int> exact = taken(cut(SampleAssignment::Remainder::exact, false));
        CHECK(static_cast<int64_t>(exact.size()) == n);
        CHECK(sum(exact) == n);

        const std::map<uint32_t, int> padded = taken(cut(SampleAssignment::Remainder::pad, false));
        CHECK(static_cast<int64_t>(padded.size()) == n);
        CHECK(sum(padded) == (n + ranks - 1) / ranks * ranks);

        const std::map<uint32_t, int> dropped =
            taken(cut(SampleAssignment::Remainder::drop, false));
        CHECK(sum(dropped) == n / ranks * ranks);
        CHECK(static_cast<int64_t>(dropped.size()) == sum(dropped));

        // Only whole global batches; the same number for every rank.
        const std::map<uint32_t, int> whole = taken(cut(SampleAssignment::Remainder::exact, true));
        CHECK(sum(whole) == n / ranks / batch * batch * ranks);
        CHECK(static_cast<int64_t>(whole.size()) == sum(whole));
      }
}

}  // namespace
}  // namespace dpt
