// Hosts find each other, or are told why not.
#include <chrono>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/hosts/pretended_hosts.h"

namespace dpt {
namespace {

using namespace std::chrono_literals;

void join_and_leave(const PretendedHost& p) { join(p)->goodbye(); }

TEST_CASE("hosts find each other and know which ranks are where") {
  for (const std::vector<int>& ranks : {std::vector{1, 1}, {2, 1, 3}, {1, 2, 3, 2, 1}}) {
    const auto hosts = pretended_hosts(ranks);
    std::vector<std::string> maps(hosts.size());
    const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
      const auto channel = join(p);
      std::string& text = maps[static_cast<size_t>(p.world.host)];
      text = fmt::format("I am {}", channel->host());
      for (int h = 0; h < channel->map().hosts(); ++h) {
        const HostMap::Host& host = channel->map().host(h);
        text += fmt::format(", {} {}+{} {}", host.name, host.first_rank, host.ranks, host.address);
      }
      channel->goodbye();
    });
    std::string expected;
    int first = 0;
    for (size_t h = 0; h < ranks.size(); first += ranks[h++])
      expected +=
          fmt::format(", {} {}+{} 127.0.0.{}", hosts[h].settings.name, first, ranks[h], h + 1);
    for (size_t h = 0; h < hosts.size(); ++h) {
      CHECK(errors[h].empty());
      CHECK(maps[h] == fmt::format("I am {}{}", h, expected));
    }
  }
}

TEST_CASE("a host that differs ends the run with one message on host 0") {
  struct Case {
    std::function<void(PretendedHost&)> change;
    const char* text;
  };
  const std::vector<Case> cases = {
      {[](PretendedHost& p) { p.identity.version = "dptrain 1.4.0"; },
       "host 2 (hostc) has dptrain 1.4.0, host 0 (hosta) has dptrain 1.5.0: install the same "
       "version on "
       "both"},
      {[](PretendedHost& p) { p.identity.spec = "other"; },
       "host 2 (hostc) and host 0 (hosta) have different specs: give both the same file and "
       "overrides"},
      {[](PretendedHost& p) { p.world.size = 5; },
       "host 2 (hostc) was started as part of 5 ranks, host 0 (hosta) as part of 4: start all "
       "hosts with the same numbers"},
      {[](PretendedHost& p) { p.identity.failure = "no such file"; },
       "host 2 (hostc) failed before all hosts had connected: no such file"},
      {[](PretendedHost& p) { p.world.rank = 2; }, "the ranks of a host must be consecutive, but"}};
  for (const Case& c : cases) {
    auto hosts = pretended_hosts({1, 2, 1});
    c.change(hosts[2]);
    const auto errors = on_each_host(hosts, join_and_leave);
    CHECK(errors[0].starts_with(c.text));
    CHECK(errors[1] == "[broken] " + errors[0]);
    CHECK(errors[2] == "[broken] " + errors[0]);
  }
}

TEST_CASE("a host that was started twice ends the run") {
  auto hosts = pretended_hosts({1, 2, 1});
  hosts[2].world = hosts[1].world;
  const auto errors = on_each_host(hosts, join_and_leave);
  const bool b_first =
      errors[0] == "ranks 1 to 2 were started twice, on hostb and on hostc: start each host once";
  const bool c_first =
      errors[0] == "ranks 1 to 2 were started twice, on hostc and on hostb: start each host once";
  CHECK((b_first || c_first));
}

TEST_CASE("host 0 says which ranks are missing when the time is up") {
  auto hosts = pretended_hosts({1, 1, 2});
  hosts.pop_back();
  for (PretendedHost& p : hosts) p.settings.gathering.timeout_s = 0.5;
  const auto errors = on_each_host(hosts, join_and_leave);
  CHECK(errors[0] ==
        fmt::format("ranks 2 to 3 of 4 did not connect to host 0 (hosta) at "
                    "127.0.0.1:{} within 0.5 s: start all hosts together, and let other "
                    "hosts reach that port",
                    hosts[0].world.master.port));
  CHECK(errors[1] == "[broken] " + errors[0]);
}

TEST_CASE("a host that finds nobody says where it looked") {
  auto hosts = pretended_hosts({1, 1});
  hosts[1].settings.gathering.timeout_s = 0.2;
  CHECK_THROWS_WITH_AS(
      join(hosts[1]),
      fmt::format(
          "host 0 did not answer at 127.0.0.1:{0} (test) within 0.2 s: 127.0.0.1:{0}: "
          "Connection refused; start all hosts together, and let other hosts reach that port "
          "(this is host 1 (hostb), with rank 1 of 2)",
          hosts[1].world.master.port)
          .c_str(),
      Error);
}

TEST_CASE("a host with another secret, or of another run, is not believed") {
  for (const bool other_run : {false, true}) {
    auto hosts = pretended_hosts({1, 1});
    if (other_run)
      hosts[1].world.run_id = "other";
    else
      hosts[1].trust.secret = "another secret of the same length";
    hosts[0].settings.gathering.timeout_s = 1;
    const auto errors = on_each_host(hosts, join_and_leave);
    CHECK(errors[1] ==
          fmt::format("the dptrain at 127.0.0.1:{} has another secret, or belongs to another run: "
                      "give all hosts the same DPTRAIN_SECRET_FILE, and each run its own port",
                      hosts[0].world.master.port));
    CHECK(errors[0].find("rank 1 of 2 did not connect") == 0);
    CHECK(errors[0].find("; a process at 127.0.0.2 has another secret (DPTRAIN_SECRET_FILE) or "
                         "belongs to another run") != std::string::npos);
  }
}

TEST_CASE("without a secret no address but loopback is used") {
  auto hosts = pretended_hosts({1, 1});
  for (PretendedHost& p : hosts) p.trust = {};
  for (const std::string& e : on_each_host(hosts, join_and_leave)) CHECK(e.empty());
  hosts[1].world.master.host = "10.255.255.1";
  try {
    join(hosts[1]);
    FAIL_CHECK("no error");
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::spec);
    CHECK(std::string(e.what()).find("through 10.255.255.1, and have no secret") !=
          std::string::npos);
  }
}

TEST_CASE("host 0 must run where the others look for it") {
  auto hosts = pretended_hosts({1, 1});
  hosts[0].world.master.host = "192.0.2.1";  // reserved: nobody has it
  CHECK_THROWS_WITH_AS(join(hosts[0]),
                       "rank 0 runs on hosta, which does not have the address 192.0.2.1 of "
                       "192.0.2.1: set test to the host of rank 0",
                       Error);
}

TEST_CASE("two runs cannot use one port") {
  const auto hosts = pretended_hosts({1, 1});
  const TcpListener taken(numeric_address("127.0.0.1", hosts[0].world.master.port).value());
  try {
    join(hosts[0]);
    FAIL_CHECK("no error");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("cannot listen on 127.0.0.1:") == 0);
    CHECK(std::string(e.what()).find("set DPTRAIN_MASTER=HOST:PORT") != std::string::npos);
  }
}

// A connection that does not behave as a host.
Descriptor stranger(int port, std::string_view says) {
  const TcpAddress at = numeric_address("127.0.0.1", port).value();
  std::string why;
  Descriptor s;
  for (int i = 0; !s && i < 1000; ++i) {
    s = connect_tcp(at, "127.0.0.9", deadline_in(5), why);
    if (!s) std::this_thread::sleep_for(10ms);
  }
  if (s && !says.empty()) send(s.get(), says.data(), says.size(), MSG_NOSIGNAL);
  return s;
}

TEST_CASE("scanners, garbage and silent connections neither delay nor end a run") {
  auto hosts = pretended_hosts({1, 1});
  // A stranger's time runs out long after the test.
  for (PretendedHost& p : hosts) p.settings.gathering.hello_s = 1000;
  std::string first_error, second_error;
  std::thread host_0([&] { first_error = on_each_host({hosts[0]}, join_and_leave)[0]; });
  const int port = hosts[0].world.master.port;
  std::vector<Descriptor> strangers;
  strangers.push_back(stranger(port, ""));
  strangers.push_back(stranger(port, "GET / HTTP/1.1\r\nHost: hosta\r\n\r\n"));
  strangers.push_back(stranger(port, std::string(100'000, '\xff')));
  strangers.push_back(stranger(port, "DPTC"));                              // the rest never comes
  strangers.push_back(stranger(port, std::string("DPTC\x01\x04\0\0", 8)));  // a hello, unasked
  stranger(port, "");                                                       // ends at once
  for (int i = 0; i < 100; ++i) strangers.push_back(stranger(port, ""));    // more than are kept
  second_error = on_each_host({hosts[1]}, join_and_leave)[0];
  host_0.join();
  CHECK(first_error.empty());
  CHECK(second_error.empty());
  for (const Descriptor& s : strangers) CHECK(s);
}

TEST_CASE("a host that has failed tells host 0, which reports it") {
  const auto hosts = pretended_hosts({1, 1});
  bool told = false;
  std::string error;
  std::thread host_0([&] { error = on_each_host({hosts[0]}, join_and_leave)[0]; });
  std::thread host_1([&] {
    told = tell_hosts_of_failure(hosts[1].world, "no data", hosts[1].trust, hosts[1].settings);
  });
  host_0.join();
  host_1.join();
  CHECK(told);
  CHECK(error == "host 1 (hostb) failed before all hosts had connected: no data");
}

TEST_CASE("if host 0 has failed, the others hear why") {
  const auto hosts = pretended_hosts({1, 1});
  std::string error;
  std::thread host_1([&] { error = on_each_host({hosts[1]}, join_and_leave)[0]; });
  CHECK(!tell_hosts_of_failure(hosts[0].world, "no data", hosts[0].trust, hosts[0].settings));
  host_1.join();
  CHECK(error == "[broken] host 0 (hosta) failed before all hosts had connected: no data");
}

}  // namespace
}  // namespace dpt
