// Runs a schedule as tests/fixtures/schedules.json did with PyTorch's.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "optim/fixture.h"
#include "optim/schedule.h"

namespace dpt::optim_test {

// Torch computes most rates from the one before: a hundred roundings of 1e-16, of numbers up to
// the size of the base rate.
inline bool near(double ours, double torchs, double base) {
  return std::abs(ours - torchs) <= 1e-12 * std::abs(torchs) + 1e-15 * base;
}

// The settings of a case, without the length of the run: total_steps, which torch wants written.
inline Node without_total(Node args) {
  std::erase_if(args.entries, [](const Node::Entry& e) { return e.key.value == "total_steps"; });
  return args;
}

// All cases of one schedule, warm-ups included; returns how many, so that a test can say what it
// saw.
inline int check_golden_schedule(std::string_view name) {
  const Document doc = fixture("schedules");
  const std::vector<double> metric = numbers(at(doc.root, "metric"));
  int cases = 0;
  for (const Node& c : at(doc.root, "cases").items) {
    const Node::Entry& named = at(c, "schedule").entries.at(0);
    row(schedule_table(), named.key.value);  // or no test would read this case
    if (named.key.value != name) continue;
    ++cases;
    CAPTURE(c.where.line);
    const ScheduleType& type = row(schedule_table(), name);
    ScheduleSpec spec{.schedule = {&type, settings(type, without_total(named.value)), {}}};
    if (const Node* warmup = find(c, "warmup")) {
      spec.warmup = integer(at(*warmup, "total_iters"));
      spec.warmup_factor = number(at(*warmup, "start_factor"));
    }
    const double base = number(at(c, "base_lr"));
    const std::vector<double> lr = numbers(at(c, "lr"));
    const Node* momentum = find(c, "momentum");
    const auto schedule = make_schedule(spec, base, static_cast<int64_t>(lr.size()));
    const double top = *std::ranges::max_element(lr);
    for (size_t k = 0; k < lr.size(); ++k) {
      CAPTURE(k);
      const double ours = schedule->lr(static_cast<int64_t>(k));
      CHECK_MESSAGE(near(ours, lr[k], top), ours << " is not " << lr[k]);
      const std::optional<double> m = schedule->momentum(static_cast<int64_t>(k));
      REQUIRE(m.has_value() == (momentum != nullptr));
      if (m) CHECK(near(*m, number(momentum->items[k]), 1));
      schedule->metric(metric[k]);
    }
  }
  return cases;
}

// What PyTorch would be told.
inline std::string schedule_text(std::string_view name, const std::string& text,
                                 int64_t total = 100) {
  const ScheduleType& type = row(schedule_table(), name);
  return type.torch(settings(type, text), total);
}

inline std::unique_ptr<Schedule> schedule(std::string_view name, const std::string& text,
                                          double base, int64_t total) {
  const ScheduleType& type = row(schedule_table(), name);
  return type.make(settings(type, text), base, total);
}

inline std::string schedule_complaints(std::string_view name, const std::string& text) {
  return complaints(row(schedule_table(), name), text);
}

}  // namespace dpt::optim_test
