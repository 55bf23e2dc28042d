// Whether hosts belong together, and messages that say why not.
#pragma once

#include <span>
#include <string>

#include "comm/hosts/messages.h"

namespace dpt {

// "host 2 (hostb)", or "the host of rank 4 (hostb)" if the launcher does not number hosts.
std::string name_of(const HostHello& hello);
std::string rank_range(int first, int count);  // "rank 4", "ranks 4 to 7"

// Why `other` cannot be in a run with host 0; empty: it can. Names both hosts, and what to do.
std::string difference(const HostHello& host_0, const HostHello& other);

// Why two hosts cannot both be in a run, because they have the same ranks; empty: they can.
std::string overlap(const HostHello& a, const HostHello& b);

// The ranks that none of the hosts has: "ranks 2 to 3, rank 6"; empty: all are there. REQUIRES: the
// hosts do not overlap.
std::string missing_ranks(std::span<const HostHello* const> hosts, int world);

}  // namespace dpt
