// HostMap: which ranks of a run are on which host.
#pragma once

#include <string>
#include <vector>

namespace dpt {

// Immutable after construction. Hosts are numbered in the order of their ranks; host 0 has rank 0.
class HostMap {
 public:
  struct Host {
    int first_rank = 0;
    int ranks = 1;     // first_rank, first_rank + 1, ...; hosts may have different numbers of ranks
    std::string name;  // as the host calls itself, for messages
    std::string address;  // numeric, of the interface through which it reaches host 0
    bool operator==(const Host&) const = default;
  };

  HostMap() = default;
  // Sorts the hosts by their ranks. Throws Error{rank} if they do not hold the ranks from 0 to some
  // number, each once.
  explicit HostMap(std::vector<Host> hosts);

  int hosts() const { return static_cast<int>(hosts_.size()); }
  int ranks() const;  // of all hosts
  // REQUIRES: 0 <= host < hosts(), 0 <= rank < ranks()
  const Host& host(int host) const { return hosts_[static_cast<size_t>(host)]; }
  int host_of(int rank) const;
  std::string name_of(int host) const;  // "host 2 (hostb)"
  // "rank 5 on host 2 (hostb)". local_rank: among those of the host; 0 is its leader.
  std::string name_of_rank(int host, int local_rank = 0) const;

 private:
  std::vector<Host> hosts_;
};

}  // namespace dpt
