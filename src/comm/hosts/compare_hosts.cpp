#include "comm/hosts/compare_hosts.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"

namespace dpt {
namespace {

std::string different_kinds(const HostHello& other, const HostHello& host_0, std::string_view what,
                            const std::string& there, const std::string& here) {
  return fmt::format(
      "{} has {} {}, {} has {}: `reproducible` needs the same on all hosts; use hosts of one kind, "
      "or leave out `reproducible`",
      name_of(other), what, there, name_of(host_0), here);
}

}  // namespace

std::string name_of(const HostHello& hello) {
  if (hello.first_rank == 0) return fmt::format("host 0 ({})", hello.name);
  return hello.host >= 0 ? fmt::format("host {} ({})", hello.host, hello.name)
                         : fmt::format("the host of rank {} ({})", hello.first_rank, hello.name);
}

std::string rank_range(int first, int count) {
  return count == 1 ? fmt::format("rank {}", first)
                    : fmt::format("ranks {} to {}", first, first + count - 1);
}

std::string difference(const HostHello& host_0, const HostHello& other) {
  const std::string here = name_of(host_0), there = name_of(other);
  const HostIdentity &mine = host_0.identity, &its = other.identity;
  if (!its.failure.empty())
    return fmt::format("{} failed before all hosts had connected: {}", there, its.failure);
  if (its.version != mine.version)
    return fmt::format("{} has {}, {} has {}: install the same version on both", there, its.version,
                       here, mine.version);
  if (other.world != host_0.world)
    return fmt::format(
        "{} was started as part of {} ranks, {} as part of {}: start all hosts with the same "
        "numbers",
        there, other.world, here, host_0.world);
  if (other.first_rank < 0 || other.ranks < 1 || other.ranks > other.world - other.first_rank)
    return fmt::format("{} says that it has {} ranks from rank {} on, but the run has {}", there,
                       other.ranks, other.first_rank, other.world);
  if (its.spec != mine.spec || its.reproducible != mine.reproducible)
    return fmt::format("{} and {} have different specs: give both the same file and overrides",
                       there, here);
  if (mine.reproducible && its.instructions != mine.instructions)
    return different_kinds(other, host_0, "the instruction set", its.instructions,
                           mine.instructions);
  if (mine.reproducible && its.onednn != mine.onednn)
    return different_kinds(other, host_0, "oneDNN", its.onednn, mine.onednn);
  return "";
}

std::string overlap(const HostHello& a, const HostHello& b) {
  if (a.first_rank >= b.first_rank + b.ranks || b.first_rank >= a.first_rank + a.ranks) return "";
  if (a.first_rank == b.first_rank && a.ranks == b.ranks)
    return fmt::format("{} {} started twice, on {} and on {}: start each host once",
                       rank_range(a.first_rank, a.ranks), a.ranks == 1 ? "was" : "were", a.name,
                       b.name);
  return fmt::format(
      "the ranks of a host must be consecutive, but {} has {} from rank {} on, and {} has {} from "
      "rank {} on: use `mpirun --map-by slot` or `srun --distribution=block`",
      a.name, a.ranks, a.first_rank, b.name, b.ranks, b.first_rank);
}

std::string missing_ranks(std::span<const HostHello* const> hosts, int world) {
  std::vector<const HostHello*> sorted(hosts.begin(), hosts.end());
  std::ranges::sort(sorted, {}, &HostHello::first_rank);
  std::string out;
  int next = 0;
  const auto add = [&](int end) {
    if (end > next) out += (out.empty() ? "" : ", ") + rank_range(next, end - next);
  };
  for (const HostHello* h : sorted) {
    add(h->first_rank);
    next = h->first_rank + h->ranks;
  }
  add(world);
  return out;
}

}  // namespace dpt
