// join_hosts(): connects this host, through its leader, to the other hosts of the run.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "comm/hosts/control_channel.h"
#include "comm/hosts/messages.h"
#include "comm/hosts/secret.h"
#include "comm/world.h"

namespace dpt {

struct HostsSettings {
  GatheringSettings gathering;
  ChannelSettings channel;
  std::string name;  // of this host, for messages; empty: as the system calls it
};

// The leader of each host, its rank with local_rank 0, calls this. Host 0 listens on the one
// interface that has the master's address, or that leads to it; the others connect to it until they
// reach it, and again if a connection is closed before they have joined. Both ends of each
// connection prove that they know the secret (handshake.h), host 0 compares the hosts, and all of
// them get the map.
//
// Throws Error{spec} if the connection would be over a network that is not trusted (secret.h), and
// Error{rank}, naming hosts and addresses, if hosts do not come within
// settings.gathering.timeout_s, differ, come twice, or have another secret. On a host that learns
// of it from host 0 it is a TeamBroken, so that only host 0 prints it.
//
// REQUIRES: world.has_several_hosts(), world.local_rank == 0. Threads: start no thread before
// processes are forked; the result has one.
std::unique_ptr<ControlChannel> join_hosts(const World& world, const HostIdentity& identity,
                                           const NetworkTrust& trust,
                                           const HostsSettings& settings = {});

// Replaces join_hosts() if this host has already failed: host 0 reports `why`, one line for the
// user, and no host waits for this one. Waits at most settings.gathering.timeout_s. Returns whether
// host 0 reports it; false for host 0 itself.
bool tell_hosts_of_failure(const World& world, std::string_view why, const NetworkTrust& trust,
                           const HostsSettings& settings) noexcept;

}  // namespace dpt
