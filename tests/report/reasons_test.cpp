#include "report/reasons.h"

#include <doctest/doctest.h>

#include "data/folder.h"
#include "report/results.h"

namespace dpt {
namespace {

const RowResult kSingle = result("single", 1, 8, 0.010, {.compute = 1, .slowest = 1});

// The sentence for one row beside kSingle, on a machine of two cores.
std::string sentence(const RowResult& row) {
  const std::vector<RowResult> rows = {kSingle, row};
  return reason(rows[1], rows, 2);
}

}  // namespace

TEST_CASE("single needs no reason") {
  const std::vector<RowResult> rows = {kSingle};
  CHECK(reason(rows[0], rows, 2).empty());
}

TEST_CASE("a faster row is explained, too, with what it loses to the ideal") {
  CHECK(sentence(result("dp", 2, 8, 0.005, {.compute = 2, .slowest = 1})) ==
        "dp on 2 devices, batch 8: 2.00x faster than single (100 % of the ideal 2x): 2 workers "
        "compute in parallel.");
  CHECK(sentence(result("ddp", 2, 8, 0.00625, {.compute = 1.6, .waiting = 0.4, .slowest = 0.8})) ==
        "ddp on 2 devices, batch 8: 1.60x faster than single (80 % of the ideal 2x): 2 workers "
        "compute in parallel, but workers wait 20 % of the time at the 2 barriers of a step, which "
        "lasts only 50.0 us.");
  CHECK(sentence(result("ddp", 2, 8, 0.004, {.compute = 2, .slowest = 1})) ==
        "ddp on 2 devices, batch 8: 2.50x faster than single (125 % of the ideal 2x): 2 workers "
        "compute in parallel; computing a sample takes only 0.80x as long as in single.");
}

TEST_CASE("a row as fast as single says so, and what keeps it from being faster") {
  CHECK(sentence(result("ddp", 1, 8, 0.010, {.compute = 1, .slowest = 1})) ==
        "ddp on 1 device, batch 8: as fast as single, within the variation between rounds.");
  CHECK(sentence(result("ddp", 1, 8, 0.0101, {.compute = 1, .slowest = 1})) ==
        "ddp on 1 device, batch 8: 1.01x slower than single, within the variation between rounds.");
  CHECK(sentence(result("dp", 2, 8, 0.010, {.compute = 1, .waiting = 1, .slowest = 0.5})) ==
        "dp on 2 devices, batch 8: as fast as single, within the variation between rounds: "
        "workers wait 50 % of the time at the 2 barriers of a step, which lasts only 80.0 us.");
}

TEST_CASE("a slower row within the variation between rounds is called that") {
  RowResult noisy = result("ddp", 1, 8, 0.0156, {.compute = 1, .slowest = 1});
  noisy.lower = 0.009;
  CHECK(sentence(noisy) ==
        "ddp on 1 device, batch 8: 1.56x slower than single, within the variation between rounds.");
}

TEST_CASE("one round that was disturbed does not make a difference one within the variation") {
  RowResult row = result("dp", 2, 8, 0.005, {.compute = 2, .slowest = 1});
  row.slowest = 0.020;
  CHECK(sentence(row).starts_with("dp on 2 devices, batch 8: 2.00x faster than single (100 %"));
}

TEST_CASE("shares that contradict the time are not given as a reason") {
  // Four fifths of the ideal, and yet two thirds of the time seem to be waiting.
  CHECK(sentence(result("ddp", 2, 8, 0.00625, {.compute = 0.7, .waiting = 1.3, .slowest = 0.35})) ==
        "ddp on 2 devices, batch 8: 1.60x faster than single (80 % of the ideal 2x): 2 workers "
        "compute in parallel; computing a sample takes only 0.44x as long as in single, but the "
        "time that workers spend in a step does not explain this: other programs may be using the "
        "machine; measure again while it is idle.");
}

TEST_CASE("waiting has the reason that explains most of it") {
  // Two workers, 67 % of whose time is waiting; a sample costs as much computing as in single.
  RowResult even = result("ddp", 2, 8, 0.015, {});
  even.spent.compute = 2 * 0.010 / 0.030;
  even.spent.waiting = 2 - even.spent.compute;
  even.spent.slowest = even.spent.compute / 2;
  CHECK(sentence(even) ==
        "ddp on 2 devices, batch 8: 1.50x slower than single: workers wait 67 % of the time at the "
        "2 barriers of a step, which lasts only 120 us.");
  RowResult slower = even;
  slower.spent.slowest = even.spent.compute * 0.7;
  CHECK(
      sentence(slower) ==
      "ddp on 2 devices, batch 8: 1.50x slower than single: workers wait 67 % of the time for the "
      "slowest worker, which computes 40 % longer than the mean.");
  slower.facts.fewest = 3;
  slower.facts.most = 5;
  CHECK(
      sentence(slower) ==
      "ddp on 2 devices, batch 8: 1.50x slower than single: workers wait 67 % of the time because "
      "one has 5 samples of each batch and another has 3.");
  slower.facts.fewest = slower.facts.most = 4;
  slower.facts.loss_on_one = true;
  CHECK(
      sentence(slower) ==
      "ddp on 2 devices, batch 8: 1.50x slower than single: workers wait 67 % of the time for the "
      "one device that computes the loss.");
  slower.spent.slowest = even.spent.compute * 0.54;  // 8 % longer: not what 67 % are lost by
  CHECK(sentence(slower) == sentence(even));
  slower.facts.bubble = 0.25;
  CHECK(
      sentence(slower) ==
      "ddp on 2 devices, batch 8: 1.50x slower than single: stages wait 67 % of the time for each "
      "other (the schedule alone makes stages of equal length wait 25 %).");
}

TEST_CASE("barriers that take far too long point to other programs, on CPUs") {
  RowResult single = kSingle;
  single.ms_per_sample = single.lower = single.upper = 1;
  std::vector<RowResult> rows = {
      single, result("ddp", 2, 8, 1.5, {.compute = 2. / 3, .waiting = 4. / 3, .slowest = 1. / 3})};
  CHECK(reason(rows[1], rows, 2) ==
        "ddp on 2 devices, batch 8: 1.50x slower than single: workers wait 67 % of the time at the "
        "2 barriers of a step, longer than barriers take: other programs may use the cores.");
  rows[1].spent.taken = 0.6;
  CHECK(has(reason(rows[1], rows, 2),
            "at the 2 barriers of a step, longer than barriers take; "
            "other programs use the cores for 30 % of the time."));
  rows[1].spent.taken = 0;
  rows[1].facts.gpus = 2;
  CHECK(reason(rows[1], rows, 2) ==
        "ddp on 2 devices, batch 8: 1.50x slower than single: workers wait 67 % of the time at the "
        "2 barriers of a step.");
}

TEST_CASE("small shares of a batch, slower computing and communication have theirs") {
  CHECK(sentence(result("dp", 2, 8, 0.012, {.compute = 2, .slowest = 1})) ==
        "dp on 2 devices, batch 8: 1.20x slower than single: each worker has only 4 samples of a "
        "batch, so computing a sample takes 2.40x as long as with 8.");
  RowResult crowded = result("dp", 2, 8, 0.012, {.compute = 2, .slowest = 1});
  crowded.facts.most = crowded.facts.fewest = 8;
  CHECK(sentence(crowded) ==
        "dp on 2 devices, batch 8: 1.20x slower than single: workers slow each other down: "
        "computing a sample takes 2.40x as long as in single.");
  CHECK(
      sentence(result("ddp", 1, 8, 0.012, {.compute = 1, .slowest = 1})) ==
      "ddp on 1 device, batch 8: 1.20x slower than single: computing a sample takes 1.20x as long "
      "as in single.");
  const WorkerSeconds exchanges{.compute = 0.5, .communication = 1.5, .slowest = 0.25};
  CHECK(sentence(result("dp", 2, 8, 0.020, exchanges)) ==
        "dp on 2 devices, batch 8: 2.00x slower than single: exchanging gradients and losses "
        "between workers takes 75 % of the time.");
  CHECK(sentence(result("pipeline", 2, 8, 0.020, exchanges)) ==
        "pipeline on 2 devices, batch 8: 2.00x slower than single: passing data between stages "
        "takes 75 % of the time.");
}

TEST_CASE("what other programs took is not blamed on the batch") {
  CHECK(sentence(result("dp", 2, 8, 0.011, {.compute = 2, .slowest = 1, .taken = 1})) ==
        "dp on 2 devices, batch 8: 1.10x slower than single: other programs use the cores for 50 % "
        "of the time.");
}

TEST_CASE("more workers than cores or GPUs take turns, and the ideal is no more than these") {
  CHECK(
      sentence(result("dp", 3, 8, 0.030, {.compute = 1, .waiting = 1, .slowest = 1})) ==
      "dp on 3 devices, batch 8: 3.00x slower than single: 3 workers take turns on 2 cores, which "
      "allow 2x at most.");
  RowResult row = result("dp", 64, 8, 0.008, {.compute = 1, .slowest = 1});
  CHECK(sentence(row) ==
        "dp on 64 devices, batch 8: 1.25x faster than single (62 % of the ideal 2x): 64 workers "
        "take turns on 2 cores, which allow 2x at most.");
  row.facts.gpus = 1;
  CHECK(sentence(row) ==
        "dp on 64 devices, batch 8: 1.25x faster than single: 64 workers take turns on 1 GPU.");
  row.facts.gpus = 64;
  CHECK(sentence(row).find("turns") == std::string::npos);
  const std::vector<RowResult> alone = {result("dp", 3, 8, 0.008, {.compute = 1, .slowest = 1})};
  CHECK(reason(alone[0], alone, 2) == "dp on 3 devices, batch 8: 3 workers take turns on 2 cores.");
}

TEST_CASE("the two worst losses are named, worst first, without those that cost little") {
  CHECK(
      sentence(result("dp", 2, 8, 0.020, {.compute = 1.2, .waiting = 0.8, .slowest = 0.6})) ==
      "dp on 2 devices, batch 8: 2.00x slower than single: workers wait 40 % of the time at the 2 "
      "barriers of a step, which lasts only 160 us; each worker has only 4 samples of a batch, so "
      "computing a sample takes 2.40x as long as with 8.");
}

TEST_CASE("without single a row is compared with the first of its batch and precision") {
  const std::vector<RowResult> rows = {
      result("dp", 2, 8, 0.010, {.compute = 2, .slowest = 1}),
      result("dp", 1, 8, 0.020, {.compute = 1, .slowest = 1}),
      result("dp", 4, 8, 0.005, {.compute = 4, .slowest = 1}),
  };
  CHECK(reason(rows[0], rows, 4).empty());
  CHECK(reason(rows[1], rows, 4) ==
        "dp on 1 device, batch 8: 2.00x slower than dp on 2 devices: 1 worker instead of 2.");
  CHECK(reason(rows[2], rows, 4) ==
        "dp on 4 devices, batch 8: 2.00x faster than dp on 2 devices (100 % of the ideal 2x): 4 "
        "workers compute in parallel.");
}

}  // namespace dpt
