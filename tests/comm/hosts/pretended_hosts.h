// Hosts of a test, each a thread of this process with an address 127.0.0.x of its own.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/hosts/hosts.h"
#include "comm/shared_memory.h"

namespace dpt {

inline int free_port() {
  return TcpListener(numeric_address("127.0.0.1", 0).value()).address().port();
}

struct PretendedHost {
  World world;
  HostIdentity identity{.version = "dptrain 1.5.0",
                        .spec = "spec",
                        .reproducible = false,
                        .instructions = "AVX2",
                        .onednn = "3.1",
                        .failure = {}};
  NetworkTrust trust{.secret = "0123456789abcdef"};
  HostsSettings settings;
};

// ranks: of each host
inline std::vector<PretendedHost> pretended_hosts(const std::vector<int>& ranks) {
  const int port = free_port();
  int size = 0;
  for (const int r : ranks) size += r;
  std::vector<PretendedHost> out;
  int first = 0;
  for (size_t h = 0; h < ranks.size(); ++h) {
    const int host = static_cast<int>(h);
    PretendedHost p;
    p.world = {.rank = first,
               .size = size,
               .local_rank = 0,
               .local_size = ranks[h],
               .job = "test",
               .launcher = "hand",
               .parent = 0,
               .host = host,
               .run_id = "test",
               .master = {.host = "127.0.0.1", .port = port, .source = "test"},
               .pretended_host = host};
    p.settings.name = std::string("host") + static_cast<char>('a' + host);
    // Long enough for a machine that runs other tests too; only tests of time limits wait for it.
    p.settings.gathering.timeout_s = 30;
    first += ranks[h];
    out.push_back(std::move(p));
  }
  return out;
}

inline std::unique_ptr<ControlChannel> join(const PretendedHost& p) {
  return join_hosts(p.world, p.identity, p.trust, p.settings);
}

// Runs body(host) for each host in a thread of its own. Returns what it threw: "" if nothing;
// "[broken] ..." for TeamBroken.
inline std::vector<std::string> on_each_host(
    const std::vector<PretendedHost>& hosts,
    const std::function<void(const PretendedHost&)>& body) {
  std::vector<std::string> out(hosts.size());
  std::vector<std::thread> threads;
  for (size_t h = 0; h < hosts.size(); ++h)
    threads.emplace_back([&, h] {
      try {
        body(hosts[h]);
      } catch (const TeamBroken& e) {
        out[h] = std::string("[broken] ") + e.what();
      } catch (const std::exception& e) {
        out[h] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return out;
}

}  // namespace dpt
