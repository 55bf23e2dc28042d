#include "cli/plan_hosts.h"

#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/machine.h"
#include "base/stdout.h"
#include "report/host_table.h"
#include "report/step_time.h"

namespace dpt::commands {
namespace {

constexpr int kMostHosts = 1024;

std::optional<int> hosts_of(std::string_view text) {
  int out = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return out >= 1 && out <= kMostHosts ? std::optional(out) : std::nullopt;
}

// The text of the first error, without its location, or empty if there is none.
std::string message_of(const Diagnostics& d) {
  constexpr std::string_view kMark = ": error: ";
  const std::string all = d.render();
  const size_t mark = all.find(kMark);
  if (mark == all.npos) return all.substr(0, all.find('\n'));
  const size_t begin = mark + kMark.size();
  return all.substr(begin, all.find('\n', begin) - begin);
}

// Measured in three rounds, or in fewer if a round takes long: it has medians of many steps anyway.
HostRow measured_row(const Session& session, const LinkModel& link) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kRounds = 3;
  constexpr std::chrono::seconds kEnough(10);
  const Clock::time_point begin = Clock::now();
  std::vector<HostRow> rounds;
  do rounds.push_back(host_row(session, measured_step_costs(session), link));
  while (rounds.size() < kRounds && Clock::now() - begin < kEnough);
  return median_row(std::move(rounds));
}

HostRow predicted_row(const LoadedSpec& loaded, const Session& one, int hosts,
                      const LinkModel& link) {
  HostRow out{.hosts = hosts, .refused = too_many_hosts(one, hosts)};
  if (!out.refused.empty()) return out;
  Spec spec = loaded.spec;
  spec.data.batch_size = one.batches.global_batch;
  spec.data.batch_size_per_replica.reset();
  spec.data.auto_batch = false;
  Diagnostics d;
  const auto session = make_session(std::move(spec), on_hosts(one.devices.topology, hosts, {}), d);
  if (!session)
    out.refused = message_of(d);
  else
    out = measured_row(*session, link);
  return out;
}

}  // namespace

std::vector<int> parse_hosts(const std::string& text) {
  const size_t dots = text.find("..");
  const std::optional<int> first = hosts_of(std::string_view(text).substr(0, dots));
  const std::optional<int> last =
      dots == text.npos ? first : hosts_of(std::string_view(text).substr(dots + 2));
  if (!first || !last)
    fail(Fault::spec,
         "--hosts: '{}' is not a number of machines from 1 to {}; write 4, or a range 1..64", text,
         kMostHosts);
  if (*first > *last)
    fail(Fault::spec, "--hosts: the range '{}' ends before it begins; write {}..{}", text, *last,
         *first);
  std::vector<int> out = {*first};
  for (int n = 1; n < *last; n *= 2)
    if (n > *first) out.push_back(n);
  if (*last > *first) out.push_back(*last);
  return out;
}

SessionQuery on_hosts(const Topology& one, int hosts, SessionQuery query) {
  query.world = one.ranks * hosts;
  query.hosts = SessionQuery::Hosts();
  query.hosts->cores_per_rank = one.workers_per_rank();
  for (int h = 0; h < hosts; ++h) query.hosts->first_ranks.push_back(h * one.ranks);
  return query;
}

void print_host_table(const LoadedSpec& loaded, const std::vector<int>& hosts,
                      const LinkModel& link) {
  const std::unique_ptr<const Session> one =
      open_session(loaded, {.one_of_several = hosts.back() > 1});
  const Topology& topology = one->devices.topology;
  // Says where the spec cannot run on several machines at all.
  if (hosts.back() > 1 && (!one->settings.mode->processes || one->devices.on_gpu()))
    open_session(loaded, on_hosts(topology, hosts.back(), {.runs = false, .sizes_only = true}));
  std::vector<HostRow> rows = {measured_row(*one, link)};
  print_stdout("{}{}", host_table_head(*one, link, cpu_name()), host_row_text(rows[0], rows[0]));
  for (const int n : hosts) {
    if (n == 1) continue;
    rows.push_back(predicted_row(loaded, *one, n, link));
    print_stdout("{}", host_row_text(rows.back(), rows[0]));
  }
  print_stdout("{}", host_table_end(*one, rows));
}

}  // namespace dpt::commands
