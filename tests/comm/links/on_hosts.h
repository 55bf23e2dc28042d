// Runs the hosts of a link as threads of one process.
#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "comm/links/conformance.h"
#include "comm/links/connect_link.h"

namespace dpt {

// all_gather() between the threads of a test.
class GatherThreads {
 public:
  explicit GatherThreads(int hosts) : texts_(hosts), barrier_(hosts) {}
  std::vector<std::string> operator()(int host, const std::string& own) {
    texts_[host] = own;
    barrier_.arrive_and_wait();
    const std::vector<std::string> all = texts_;
    barrier_.arrive_and_wait();
    return all;
  }

 private:
  std::vector<std::string> texts_;
  std::barrier<> barrier_;
};

// Runs a body on `hosts` links at once, each in a thread. Returns each host's error; empty: none.
inline std::vector<std::string> on_hosts(int hosts, double timeout_s, const ConnectLink& connect,
                                         const LinkBody& body,
                                         const std::string& address = "127.0.0.1") {
  GatherThreads gather(hosts);
  std::vector<std::string> errors(hosts);
  std::vector<std::thread> threads;
  for (int host = 0; host < hosts; ++host)
    threads.emplace_back([&, host] {
      try {
        const std::unique_ptr<Link> link =
            connect({.host = host,
                     .hosts = hosts,
                     .address = address,
                     .timeout_s = timeout_s,
                     .all_gather = [&](const std::string& own) { return gather(host, own); }});
        body(*link);
      } catch (const std::exception& e) {
        errors[host] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return errors;
}

// Runs the cases of all links on 2, 3 and 5 hosts.
inline void run_cases(const std::function<ConnectLink(int hosts, double timeout_s)>& engine) {
  for (const LinkCase& c : link_cases())
    for (const int hosts : {2, 3, 5}) {
      if (c.hosts != 0 && c.hosts != hosts) continue;
      CAPTURE(c.name);
      CAPTURE(hosts);
      const auto errors = on_hosts(hosts, c.timeout_s, engine(hosts, c.timeout_s), c.body);
      for (int host = 0; host < hosts; ++host) {
        CAPTURE(host);
        CHECK(errors[host] == "");
      }
    }
}

}  // namespace dpt
