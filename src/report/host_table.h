// The table of `dptrain plan --link`: a training step on more and more hosts (machines).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/host_time.h"

namespace dpt {

struct HostRow {
  int hosts = 1;
  int64_t samples = 0;  // in a step, of the host with the most
  int at_once = 1;      // workers that were measured at the same time
  HostStepTime direct, ring;
  size_t rounds = 1;      // of which it is the median
  double spread = 0;      // half of the range of `direct` in several rounds, relative to it
  std::string refused{};  // why the spec cannot run on so many; then only `hosts` is set
};
HostRow host_row(const Session& session, const StepCosts& costs, const LinkModel& link);

// The median of several rounds. REQUIRES: at least one.
HostRow median_row(std::vector<HostRow> rounds);

// Why the hosts would be too many for the samples of a step, which are the same on any number of
// hosts; empty: they are not. one: the session on one host.
std::string too_many_hosts(const Session& one, int hosts);

// The lines above the table, with its head. one: the session on one host. machine: its processor.
std::string host_table_head(const Session& one, const LinkModel& link, const std::string& machine);
// A line. one: the row of one host, over which speed-ups are.
std::string host_row_text(const HostRow& row, const HostRow& one);
// The lines below the table. rows: from that of one host on.
std::string host_table_end(const Session& one, std::span<const HostRow> rows);

}  // namespace dpt
