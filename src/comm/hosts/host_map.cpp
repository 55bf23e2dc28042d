#include "comm/hosts/host_map.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace dpt {

HostMap::HostMap(std::vector<Host> hosts) : hosts_(std::move(hosts)) {
  std::ranges::sort(hosts_, {}, &Host::first_rank);
  int next = 0;
  for (const Host& h : hosts_) {
    if (h.first_rank != next || h.ranks < 1)
      fail(Fault::rank, "the hosts of the run do not hold consecutive ranks: rank {} is {}", next,
           h.first_rank > next ? "on none" : "on two");
    next += h.ranks;
  }
}

int HostMap::ranks() const {
  return hosts_.empty() ? 0 : hosts_.back().first_rank + hosts_.back().ranks;
}

int HostMap::host_of(int rank) const {
  const auto after = std::ranges::upper_bound(hosts_, rank, {}, &Host::first_rank);
  return static_cast<int>(after - hosts_.begin()) - 1;
}

std::string HostMap::name_of(int host) const {
  return fmt::format("host {} ({})", host, this->host(host).name);
}

std::string HostMap::name_of_rank(int host, int local_rank) const {
  return fmt::format("rank {} on {}", this->host(host).first_rank + local_rank, name_of(host));
}

}  // namespace dpt
