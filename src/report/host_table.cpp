#include "report/host_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/byte_count.h"
#include "base/count.h"
#include "report/numbers.h"
#include "report/step_time.h"

namespace dpt {
namespace {

constexpr size_t kWidth = 80;  // of a terminal
constexpr const char* kColumns = "{:>5}  {:>8}  {:>8}  {:>9}  {:>8}  {:>8}  {:>10}  {:>8}\n";

std::string ms(double seconds) { return seconds > 0 ? time_text(1e3 * seconds) : "0"; }

// `out`, then the words of a text in lines of kWidth, each after the first behind `indent` spaces.
std::string wrapped(std::string out, const std::string& text, size_t indent) {
  size_t column = out.size();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (column + 1 + end - begin > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    out += text.substr(begin, end - begin);
    column += end - begin;
    begin = end + 1;
  }
  return out + "\n";
}

// The speed-up for each host.
double efficiency(const HostRow& row, const HostRow& one) {
  return one.direct.total() / row.direct.total() / row.hosts;
}

int64_t most_samples(const Session& s) {
  StepRows rows;
  s.batches.train->step(0, rows);
  std::vector<int64_t> of_host(static_cast<size_t>(s.devices.topology.hosts()));
  for (const auto& micro : rows.micro)
    for (size_t shard = 0; shard < micro.size(); ++shard)
      of_host[static_cast<size_t>(s.devices.topology.host_of_shard(static_cast<int>(shard)))] +=
          micro[shard].rows.count();
  return std::ranges::max(of_host);
}

}  // namespace

HostRow host_row(const Session& session, const StepCosts& costs, const LinkModel& link) {
  return {.hosts = session.devices.topology.hosts(),
          .samples = most_samples(session),
          .at_once = costs.at_once,
          .direct = predict_host_step(session, costs, link, SumAlgorithm::direct),
          .ring = predict_host_step(session, costs, link, SumAlgorithm::ring)};
}

HostRow median_row(std::vector<HostRow> rounds) {
  std::ranges::sort(rounds, {}, [](const HostRow& row) { return row.direct.total(); });
  HostRow out = rounds[rounds.size() / 2];
  out.spread = (rounds.back().direct.total() - rounds.front().direct.total()) / 2;
  out.spread /= out.direct.total();
  out.rounds = rounds.size();
  return out;
}

std::string too_many_hosts(const Session& one, int hosts) {
  const Topology& topology = one.devices.topology;
  const int64_t batch = one.batches.global_batch;
  const int64_t shards = int64_t{topology.shards} * (topology.reproducible ? 1 : hosts);
  if (topology.reproducible && hosts > shards)
    return fmt::format("reproducible: {} gives work to at most {}", shards,
                       counted(shards, "host"));
  if (batch < shards)
    return fmt::format("{} a step are fewer than the {} of {}", counted(batch, "sample"),
                       counted(shards, "shard"), counted(hosts, "host"));
  return "";
}

std::string host_table_head(const Session& one, const LinkModel& link, const std::string& machine) {
  const Topology& topology = one.devices.topology;
  return fmt::format(
             "host: {}\n  {}, {} each\nlink {}\n"
             "step: {} over all hosts, {} of gradients\n\n",
             machine, counted(topology.ranks, "rank"), counted(topology.workers_per_rank(), "core"),
             link_text(link), counted(one.batches.global_batch, "sample"),
             bytes_text(sizeof(float) * static_cast<double>(one.model.layout.trainable))) +
         fmt::format(kColumns, "hosts", "samples", "local", "exchange", "step", "speed-up",
                     "efficiency", "ring");
}

std::string host_row_text(const HostRow& row, const HostRow& one) {
  if (!row.refused.empty())
    return wrapped(fmt::format("{:>5}  refused:", row.hosts), row.refused, 7);
  const double share = efficiency(row, one), spread = share * (row.spread + one.spread);
  return fmt::format(kColumns, row.hosts, row.samples, ms(row.direct.local),
                     ms(row.direct.exchange), ms(row.direct.total()), ratio_text(share * row.hosts),
                     row.hosts == 1 || row.rounds == 1
                         ? percent_text(share)
                         : fmt::format("{:.0f} +-{:.0f} %", 100 * share, 100 * spread),
                     ms(row.ring.total()));
}

std::string host_table_end(const Session& one, std::span<const HostRow> rows) {
  constexpr double kRounded = 1.005;  // more than 100 % in the table
  const bool above = std::ranges::any_of(rows, [&](const HostRow& r) {
    return r.refused.empty() && efficiency(r, rows[0]) >= kRounded;
  });
  return std::string(
             "\nsamples: of one host in a step. local: computing, summing and updating.\n"
             "exchange: waiting for other hosts. step: both. efficiency: speed-up / "
             "hosts,\nwith half of its range in several rounds.\n"
             "ring: the step if gradients and weights were passed around a ring.\n") +
         (above
              ? "above 100 %: the smaller share of a host fits better into its caches, or another\n"
                "program was running: close it and measure again.\n"
              : "") +
         assumptions_text(one, rows[0].at_once);
}

}  // namespace dpt
