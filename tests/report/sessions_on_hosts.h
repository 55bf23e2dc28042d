// Sessions on pretended hosts, and costs of their steps that nobody has measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/cpu/step_costs.h"
#include "train/run_spec.h"

namespace dpt {

// The session of the first of so many hosts with one rank each; null if the spec is refused.
inline std::unique_ptr<const Session> session_on_hosts(
    const std::string& yaml, int hosts, const std::vector<std::string>& overrides = {},
    std::string* refused = nullptr) {
  SessionQuery query{.world = hosts, .runs = false, .sizes_only = true};
  query.hosts = SessionQuery::Hosts();
  for (int h = 0; h < hosts; ++h) query.hosts->first_ranks.push_back(h);
  std::unique_ptr<const Session> out;
  const std::string errors = errors_of_session(yaml, overrides, query, out);
  if (refused) *refused = errors;
  return out;
}

// A millisecond for each sample of a host; the other pieces as given.
inline StepCosts costs_per_sample(const Session& s, double sum_own, double update) {
  StepRows rows;
  s.batches.train->step(0, rows);
  double samples = 0;
  const Rows own = s.devices.topology.shards_of_host(s.devices.topology.host);
  for (const auto& micro : rows.micro)
    for (int64_t shard = own.begin; shard < own.end; ++shard)
      samples += static_cast<double>(micro[static_cast<size_t>(shard)].rows.count());
  return {.forward = {0},
          .backward = {0},
          .sum_own = sum_own,
          .update = update,
          .whole = 1e-3 * samples,
          .kernels = {}};
}

}  // namespace dpt
