// Gathering: the leaders of all hosts connect to that of host 0, which compares them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/hosts/connection.h"
#include "comm/hosts/handshake.h"
#include "comm/hosts/messages.h"
#include "comm/hosts/tcp.h"

namespace dpt {

struct GatheringSettings {
  double timeout_s = 60;  // for all hosts to come
  // Extra time of the other hosts, so that host 0 is the one to report who is missing.
  double grace_s = 5;
  double notice_s = 5;  // then a host that still waits says for whom
  double hello_s = 5;   // for a new connection to prove itself and to send its hello
  double linger_s = 2;  // after a refusal, for which host 0 waits to tell late hosts
  double gone_s = 5;    // without an answer, after which a host 0 that has answered has ended
};

struct GatheredHosts {
  int host = 0;
  HostMap map;
  // Host 0: of the hosts 1, 2, ...; the other hosts: of host 0.
  std::vector<Connection> peers;
};

// Host 0's part: waits until the hosts that connect have all ranks, and sends the map to them.
// Throws Error{rank} with one line that names the hosts if they do not come in time, differ or come
// twice; all hosts that have connected get it too. Connections that do not authenticate are
// dropped, reported once on stderr, and delay nobody. Their number is limited, for each address and
// in all. No authenticated connection is dropped for them; a host that is dropped before connects
// again.
GatheredHosts gather_hosts(TcpListener& listener, const HostHello& own, const Handshake& handshake,
                           Deadline deadline, const GatheringSettings& settings);

// What a host has learned of host 0 by its attempts to join it.
struct Host0 {
  std::optional<LaunchId> launch;  // not set: host 0 has not proved itself yet
  std::string at;                  // the address where it did
  std::string why;                 // why the last attempt failed
};

// The part of the other hosts, on a connection to what may be host 0. nullopt: it is not, or the
// connection was closed, and `host_0.why` says so; then the host may try again. Throws Error{rank}
// if it is host 0 of another launch or another run, or has another secret; TeamBroken if host 0
// refuses, and reports why itself.
std::optional<GatheredHosts> join_host_0(Connection connection, const HostHello& own,
                                         const Handshake& handshake, Deadline deadline,
                                         const GatheringSettings& settings, Host0& host_0);

}  // namespace dpt
