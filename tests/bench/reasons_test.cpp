#include "bench/reasons.h"

#include <doctest/doctest.h>

#include "bench/results.h"

namespace dpt {
namespace {

const RowResult kSingle = result("single", 1, 8, 0.010, {.compute = 1, .slowest = 1});

// The sentence for one row beside kSingle, on a machine of two cores.
std::string sentence(const RowResult& row) {
  const std::vector<RowResult> rows = {kSingle, row};
  const std::vector<std::string> all = reasons(rows, 2);
  CHECK(all.size() <= 1);
  return all.empty() ? "" : all[0];
}

}  // namespace

TEST_CASE("a row that is as fast as single, or faster, needs no reason") {
  CHECK(sentence(result("dp", 2, 8, 0.005, {.compute = 1})).empty());
  CHECK(sentence(result("ddp", 1, 8, 0.010, {.compute = 1})).empty());
}

TEST_CASE("a difference within the spread of the rounds is told as such") {
  CHECK(sentence(result("dp", 2, 8, 0.0101, {.compute = 1, .waiting = 1})) ==
        "dp on 2 devices, batch 8: 1.01x slower than single, within the variation between rounds.");
}

TEST_CASE("waiting has one of four reasons") {
  // Two workers, 30 % of whose time is waiting; a sample costs as much computing as in single.
  RowResult even = result("ddp", 2, 8, 0.015, {.compute = 1.4, .waiting = 0.6, .slowest = 0.7});
  even.spent.compute = 2 * 0.010 / 0.030;
  even.spent.waiting = 2 - even.spent.compute;
  even.spent.slowest = even.spent.compute / 2;
  CHECK(sentence(even) ==
        "ddp on 2 devices, batch 8: 1.5x slower than single: it spends 67 % of the time in the 2 "
        "meetings of a step, which takes only 120 us.");
  RowResult slower = even;
  slower.spent.slowest = even.spent.compute * 0.7;
  CHECK(sentence(slower) ==
        "ddp on 2 devices, batch 8: 1.5x slower than single: it waits 67 % of the time for the "
        "slower worker, which computes for 40 % longer than the mean.");
  slower.facts.fewest = 3;
  slower.facts.most = 5;
  CHECK(sentence(slower) ==
        "ddp on 2 devices, batch 8: 1.5x slower than single: it waits 67 % of the time for the "
        "worker that has 5 samples of a batch, where another has 3.");
  slower.facts.fewest = slower.facts.most = 4;
  slower.facts.loss_on_one = true;
  CHECK(sentence(slower) ==
        "ddp on 2 devices, batch 8: 1.5x slower than single: it waits 67 % of the time for one "
        "device, which computes the loss for all.");
}

TEST_CASE("small batches, communication, fewer workers and too many have theirs") {
  CHECK(sentence(result("dp", 2, 8, 0.012, {.compute = 2, .slowest = 1})) ==
        "dp on 2 devices, batch 8: 1.2x slower than single: it has a batch of only 4 per worker: "
        "computing a sample costs 2.4 times what it does in batches of 8.");
  RowResult crowded = result("dp", 2, 8, 0.012, {.compute = 2, .slowest = 1});
  crowded.facts.most = crowded.facts.fewest = 8;
  CHECK(sentence(crowded) ==
        "dp on 2 devices, batch 8: 1.2x slower than single: it has workers that hinder each other: "
        "computing a sample costs 2.4 times what it does in single.");
  CHECK(sentence(
            result("dp", 2, 8, 0.020, {.compute = 0.5, .communication = 1.5, .slowest = 0.25})) ==
        "dp on 2 devices, batch 8: 2x slower than single: it spends 75 % of the time on what other "
        "workers made: their gradients and losses.");
  CHECK(sentence(result("dp", 3, 8, 0.030, {.compute = 1, .waiting = 1, .slowest = 1})) ==
        "dp on 3 devices, batch 8: 3x slower than single: it has more workers than cores: 3 on 2.");
  CHECK(sentence(result("dp", 3, 8, 0.008, {.compute = 1})) ==
        "dp on 3 devices, batch 8: 3 workers share 2 cores, so they take turns.");
  RowResult both = kSingle;
  both.facts.workers = 2;
  const std::vector<RowResult> rows = {both,
                                       result("ddp", 1, 8, 0.020, {.compute = 1, .slowest = 1})};
  CHECK(reasons(rows, 2).at(0) ==
        "ddp on 1 device, batch 8: 2x slower than single: it has 1 worker, single 2.");
}

TEST_CASE("what other programs took is not blamed on the batch") {
  CHECK(sentence(result("dp", 2, 8, 0.011, {.compute = 2, .slowest = 1, .taken = 1})) ==
        "dp on 2 devices, batch 8: 1.1x slower than single: it had no core for 50 % of the time, "
        "which other programs took.");
}

TEST_CASE("workers on GPUs share these, not cores") {
  RowResult row = result("dp", 3, 8, 0.030, {.compute = 1, .waiting = 1, .slowest = 1});
  row.facts.gpus = 1;
  CHECK(sentence(row) ==
        "dp on 3 devices, batch 8: 3x slower than single: it has more workers than GPUs: 3 on 1.");
  row.ms_per_sample = 0.008;
  CHECK(sentence(row) == "dp on 3 devices, batch 8: 3 workers share 1 GPU, so they take turns.");
  row.facts.gpus = 3;
  CHECK(sentence(row).empty());
}

TEST_CASE("what costs at least a third of the worst is told, worst first") {
  CHECK(sentence(result("dp", 2, 8, 0.020, {.compute = 1.2, .waiting = 0.8, .slowest = 0.6})) ==
        "dp on 2 devices, batch 8: 2x slower than single: it spends 40 % of the time in the 2 "
        "meetings of a step, which takes only 160 us; and has a batch of only 4 per worker: "
        "computing a sample costs 2.4 times what it does in batches of 8.");
}

TEST_CASE("single's row is the one with the same batch and precision") {
  std::vector<RowResult> rows = {kSingle, kSingle, kSingle,
                                 result("dp", 2, 8, 0.02, {.compute = 1})};
  rows[0].row.batch_size = 16;
  rows[1].row.precision = "bf16";
  CHECK(single_of(rows[3], rows) == &rows[2]);
  CHECK(single_of(rows[2], rows) == nullptr);
  rows[2].refused = "no";
  CHECK(single_of(rows[3], rows) == nullptr);
}

}  // namespace dpt
