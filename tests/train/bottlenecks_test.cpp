#include "train/bottlenecks.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "base/run_delay.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

struct NoReader : SampleReader {
  void read(uint32_t, std::span<std::byte>) const override {}
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A run of two workers.
struct Run {
  Session session = *session_of(R"(
data: {dataset: {random: {samples: 64, in_features: 3, out_features: 2}}, batch_size: 16}
model: [{linear: 2}]
loss: mse_loss
optimizer: {sgd: 0.01}
)",
                                {"cores=2"});
  double delay = 0;  // share of the time that the first worker waits for a core
  Bottlenecks bottlenecks;

  explicit Run(int cores = 2) : bottlenecks(session, cores, [this] { return delay; }) {}
  std::string after_epoch(const TrainingTimes& epoch) { return bottlenecks.after_epoch(epoch); }
};

TEST_CASE("each cause is reported once, with its share and what to do") {
  Run run;
  const TrainingTimes barriers{.seconds = 4, .data = 0.4, .barriers = 1.6, .steps = 20000};
  const std::string text = run.after_epoch(barriers);
  CHECK_MESSAGE(has(text, "steps of 0.2 ms spend 40 % of their time at barriers"), text);
  CHECK_MESSAGE(has(text, "a batch of 16 is too small for 2 cores"), text);
  CHECK(run.after_epoch(barriers).empty());
  const std::string data = run.after_epoch({.seconds = 10, .data = 5, .barriers = 4, .steps = 1});
  CHECK_MESSAGE(has(data, "50 % of the training time is spent making batches"), data);
  CHECK(run.after_epoch({.seconds = 10, .data = 5, .steps = 1}).empty());
  run.delay = 0.25;
  const std::string cores = run.after_epoch({.seconds = 10, .data = 5, .steps = 1});
  CHECK_MESSAGE(has(cores, "for 25 % of the time the first worker waited for a core"), cores);
  CHECK(run.after_epoch({.seconds = 10, .steps = 1}).empty());
}

TEST_CASE("data that is read on demand is waited for, not made") {
  Run run;
  run.session.data.train.reader = std::make_shared<const NoReader>();
  CHECK(has(run.after_epoch({.seconds = 10, .data = 3, .steps = 1}),
            "30 % of the training time is spent waiting for data"));
  // It is the run's own threads, which decode, that take cores away from its workers.
  run.delay = 0.5;
  CHECK(run.after_epoch({.seconds = 10, .steps = 1}).empty());
}

TEST_CASE("short epochs are put together, and shares below the limits say nothing") {
  Run run;
  CHECK(run.after_epoch({.seconds = 1.5, .data = 1, .steps = 1}).empty());
  CHECK(has(run.after_epoch({.seconds = 1.5, .data = 0.5, .steps = 1}), "50 % of the training"));
  Run other;
  other.delay = 0.19;
  CHECK(other.after_epoch({.seconds = 10, .data = 1.9, .barriers = 2.4, .steps = 1}).empty());
}

// They were warned of when the run began.
TEST_CASE("more workers than cores wait for cores and each other, which is no news") {
  Run run(1);
  CHECK(run.after_epoch({.seconds = 10, .barriers = 8, .steps = 1}).empty());
  run.delay = 0.8;
  CHECK(run.after_epoch({.seconds = 10, .steps = 1}).empty());
}

TEST_CASE("the time for which a thread waits for a core only grows") {
  RunDelay delay;
  const auto first = run_delay_s();
  const auto second = run_delay_s();
  CHECK(first.has_value() == second.has_value());
  if (first && second) {
    CHECK(*first >= 0);
    CHECK(*second >= *first);
  }
  const double share = delay.share();
  CHECK(share >= 0);
  CHECK(share <= 1);
}

}  // namespace
}  // namespace dpt
