// Gathering: the leaders of all hosts connect to that of host 0, which compares them.
#pragma once

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
};

struct GatheredHosts {
  int host = 0;
  HostMap map;
  // Host 0: of the hosts 1, 2, ...; the other hosts: of host 0.
  std::vector<Connection> peers;
};

// Host 0's part: waits until the hosts that connect have all ranks, and sends the map to them.
// Throws Error{rank} with one line that names the hosts if they do not come in time, differ or come
// twice; all hosts that have connected get it too. Connections that prove nothing are dropped,
// reported once on stderr, and delay nobody.
GatheredHosts gather_hosts(TcpListener& listener, const HostHello& own, const Handshake& handshake,
                           Deadline deadline, const GatheringSettings& settings);

// The part of the other hosts, on a connection to what may be host 0. nullopt: it is not, and `why`
// says so. Throws Error{rank} if it is host 0 of another run or has another secret, or ends;
// TeamBroken if host 0 refuses, and reports why itself.
std::optional<GatheredHosts> join_host_0(Connection connection, const HostHello& own,
                                         const Handshake& handshake, Deadline deadline,
                                         const GatheringSettings& settings, std::string& why);

}  // namespace dpt
