#include "parallel/schedule.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"

namespace dpt {
namespace {

std::string text(const std::vector<StageOp>& ops) {
  std::string out;
  for (const StageOp& op : ops)
    out += fmt::format("{}{}{}.{}", out.empty() ? "" : " ", op.backward ? 'B' : 'F', op.stage,
                       op.chunk);
  return out;
}

std::vector<int> stages(int devices, int turns) {
  std::vector<int> out;
  for (int i = 0; i < devices * turns; ++i) out.push_back(i % devices);
  return out;
}

TEST_CASE("gpipe fills the pipeline and drains it") {
  const PipelineSchedule s = pipeline_schedule(ScheduleKind::gpipe, {0, 1}, 3);
  CHECK(text(s[0]) == "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2");
  CHECK(text(s[1]) == "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2");
  CHECK(in_flight(s, 0, 12) == 3);
  CHECK(in_flight(s, 0, 2) == 2);  // of the first two chunks
}

// As torch.distributed.pipelining's Schedule1F1B: min(chunks, stages - stage) forward parts first.
TEST_CASE("1f1b keeps as many chunks as there are stages behind") {
  const PipelineSchedule s = pipeline_schedule(ScheduleKind::one_f_one_b, {0, 1, 2}, 4);
  CHECK(text(s[0]) == "F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3");
  CHECK(text(s[1]) == "F1.0 F1.1 B1.0 F1.2 B1.1 F1.3 B1.2 B1.3");
  CHECK(text(s[2]) == "F2.0 B2.0 F2.1 B2.1 F2.2 B2.2 F2.3 B2.3");
  for (int stage = 0; stage < 3; ++stage) CHECK(in_flight(s, stage, 12) == 3 - stage);
}

TEST_CASE("interleaved stages go round the devices") {
  const PipelineSchedule s = pipeline_schedule(ScheduleKind::interleaved, stages(2, 2), 4);
  CHECK(text(s[0]) ==
        "F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3");
  CHECK(text(s[1]) ==
        "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3");
}

TEST_CASE("chunks that do not go round evenly are refused") {
  CHECK_THROWS_AS(pipeline_schedule(ScheduleKind::interleaved, stages(2, 2), 3), Error);
  CHECK_THROWS_AS(pipeline_schedule(ScheduleKind::one_f_one_b, {0, 1, 0}, 2), Error);
}

TEST_CASE("a device that waits for a chunk which never comes is a mistake of the schedule") {
  const PipelineSchedule stuck = {{{0, 0, true}, {0, 0, false}}};
  CHECK_THROWS_AS(simulate(stuck, {1.0}, {2.0}), Error);
}

TEST_CASE("layers that are placed on devices take turns") {
  const PipelineSchedule s = pipeline_schedule(ScheduleKind::sequential, {0, 1, 0}, 2);
  CHECK(text(s[0]) == "F0.0 F2.0 B2.0 B0.0 F0.1 F2.1 B2.1 B0.1");
  CHECK(text(s[1]) == "F1.0 B1.0 F1.1 B1.1");
  for (int stage = 0; stage < 3; ++stage) CHECK(in_flight(s, stage, 12) == 1);
}

// Each op stands behind the one that it follows, and devices keep their order.
void check_one_order(const PipelineSchedule& schedule) {
  std::vector<size_t> next(schedule.size());
  std::set<std::tuple<int, int, bool>> done;
  int last = 0;
  for (const auto& ops : schedule)
    for (const StageOp& op : ops) last = std::max(last, op.stage);
  for (const StageOp& op : topological_order(schedule)) {
    const bool first = op.stage == (op.backward ? last : 0);
    if (!first) CHECK(done.contains({op.stage + (op.backward ? 1 : -1), op.chunk, op.backward}));
    if (op.backward) CHECK(done.contains({op.stage, op.chunk, false}));
    done.insert({op.stage, op.chunk, op.backward});
    const auto device = std::ranges::find_if(
        schedule, [&](const auto& ops) { return std::ranges::find(ops, op) != ops.end(); });
    const auto d = static_cast<size_t>(device - schedule.begin());
    CHECK(schedule[d][next[d]++] == op);
  }
  for (size_t d = 0; d < schedule.size(); ++d) CHECK(next[d] == schedule[d].size());
}

TEST_CASE("every schedule does everything once, ends, and sums gradients in the order of chunks") {
  for (int devices = 1; devices <= 5; ++devices)
    for (int turns = 1; turns <= 3; ++turns)
      for (int chunks = 1; chunks <= 12; ++chunks)
        for (const auto kind : {ScheduleKind::sequential, ScheduleKind::gpipe,
                                ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
          const bool rounds =
              kind == ScheduleKind::one_f_one_b || kind == ScheduleKind::interleaved;
          if (rounds && turns > 1 && chunks % devices != 0) continue;
          const std::vector<int> device = stages(devices, turns);
          const PipelineSchedule s = pipeline_schedule(kind, device, chunks);
          const std::vector<double> one(device.size(), 1.0), two(device.size(), 2.0);
          const Timing t = simulate(s, one, two);  // throws where devices wait for each other
          CHECK(t.total >= chunks * turns * 3);
          std::vector<int> next[2] = {std::vector<int>(device.size()),
                                      std::vector<int>(device.size())};
          for (size_t d = 0; d < s.size(); ++d)
            for (const StageOp& op : s[d]) {
              CHECK(device[static_cast<size_t>(op.stage)] == static_cast<int>(d));
              CHECK(next[op.backward][static_cast<size_t>(op.stage)]++ == op.chunk);
            }
          for (const auto& count : next)
            CHECK(std::ranges::all_of(count, [&](int n) { return n == chunks; }));
          check_one_order(s);
        }
}

// (devices - 1) / (chunks + devices - 1) where all stages take as long: Huang et al., 2019.
TEST_CASE("bubbles have the size that theory says") {
  for (int devices : {2, 4})
    for (int chunks : {4, 8}) {
      const std::vector<int> device = stages(devices, 1);
      const std::vector<double> one(device.size(), 1.0), two(device.size(), 2.0);
      const double wanted = (devices - 1.0) / (chunks + devices - 1.0);
      for (const auto kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b})
        CHECK(simulate(pipeline_schedule(kind, device, chunks), one, two).bubble ==
              doctest::Approx(wanted));
      // Two stages a device halve it: Narayanan et al., 2021.
      const std::vector<int> twice = stages(devices, 2);
      const std::vector<double> half(twice.size(), 0.5), whole(twice.size(), 1.0);
      const double share = (devices - 1.0) / (2 * chunks + devices - 1.0);
      CHECK(simulate(pipeline_schedule(ScheduleKind::interleaved, twice, chunks), half, whole)
                .bubble == doctest::Approx(share));
    }
}

}  // namespace
}  // namespace dpt
