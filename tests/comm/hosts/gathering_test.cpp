// Hosts find each other, or are told why not.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/hosts/bytes.h"
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
  strangers.push_back(stranger(port, std::string("DPTC\x02\x04\0\0", 8)));  // a hello, unasked
  stranger(port, "");                                                       // ends at once
  for (int i = 0; i < 100; ++i) strangers.push_back(stranger(port, ""));    // more than are kept
  second_error = on_each_host({hosts[1]}, join_and_leave)[0];
  host_0.join();
  CHECK(first_error.empty());
  CHECK(second_error.empty());
  for (const Descriptor& s : strangers) CHECK(s);
}

Frame next_frame(Connection& c) {
  for (int i = 0; i < 20'000; ++i) {
    c.flush();
    if (auto frame = c.receive()) return *frame;
    std::this_thread::sleep_for(1ms);
  }
  throw Error(Fault::rank, "no frame for 20 s");
}

TEST_CASE("a host between challenge and response outlasts a burst of strangers") {
  const auto hosts = pretended_hosts({1, 1});
  std::string error;
  std::thread host_0([&] { error = on_each_host({hosts[0]}, join_and_leave)[0]; });
  const int port = hosts[0].world.master.port;
  std::vector<Descriptor> strangers;
  const auto burst = [&] {
    for (int i = 0; i < 100; ++i) strangers.push_back(stranger(port, ""));
    const int last = strangers.back().get();  // when it has its challenge, all have been accepted
    wait_for_socket(last, POLLIN, deadline_in(20));
    char byte = 0;
    CHECK(recv(last, &byte, 1, 0) == 1);
  };
  stranger(port, "");  // host 0 listens
  std::string why;
  Connection host_1(
      connect_tcp(numeric_address("127.0.0.1", port).value(), "127.0.0.2", deadline_in(5), why));
  const Handshake handshake(hosts[1].trust.secret, hosts[1].world.run_id);
  using Role = Handshake::Role;
  Nonce of_host_0, own = random_nonce();
  LaunchId launch{};
  try {
    host_1.reader().accept(FrameType::challenge, sizeof(Nonce));
    std::ranges::copy(next_frame(host_1).payload, of_host_0.begin());
    burst();
    ByteWriter response;
    response.raw(own);
    response.raw(handshake.digest(Role::response, of_host_0, own));
    host_1.send(FrameType::response, response.bytes());
    host_1.reader().accept(FrameType::proof, sizeof launch + sizeof(Digest));
    std::ranges::copy(ByteReader(next_frame(host_1).payload).raw(sizeof launch), launch.begin());
    burst();
    host_1.use_keys(handshake.digest(Role::to_host_0, of_host_0, own, launch),
                    handshake.digest(Role::from_host_0, of_host_0, own, launch));
    host_1.reader().accept(FrameType::welcome, longest_welcome(2));
    host_1.send(FrameType::hello, encode(HostHello{.first_rank = 1,
                                                   .ranks = 1,
                                                   .world = 2,
                                                   .host = 1,
                                                   .name = "hostb",
                                                   .address = "127.0.0.2",
                                                   .identity = hosts[1].identity}));
    CHECK(next_frame(host_1).type == FrameType::welcome);
  } catch (const Error& e) {
    FAIL_CHECK(e.what());
    tell_hosts_of_failure(hosts[1].world, "the test ends", hosts[1].trust, hosts[1].settings);
  }
  host_0.join();
  CHECK(error.empty());
}

TEST_CASE("strangers that come all the time keep no host out") {
  for (int round = 0; round < 3; ++round) {
    const auto hosts = pretended_hosts({1, 1});
    std::atomic<bool> end = false;
    std::atomic<int> connections = 0;
    std::thread flood([&] {
      const TcpAddress at = numeric_address("127.0.0.1", hosts[0].world.master.port).value();
      std::deque<Descriptor> open;
      for (std::string why; !end;) {
        open.push_back(connect_tcp(at, "127.0.0.9", deadline_in(5), why));
        if (open.back()) ++connections;
        if (open.size() > 200) open.pop_front();
      }
    });
    const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
      for (int i = 0; i < 20'000 && p.world.host == 1 && connections < 300; ++i)
        std::this_thread::sleep_for(1ms);
      join_and_leave(p);
    });
    end = true;
    flood.join();
    for (const std::string& e : errors) CHECK(e == "");
  }
}

// Stands between a host and host 0. `ways`: for each connection that comes, the port to which it
// leads, and how many bytes of host 0's reach the host before both sides are closed.
class Proxy {
 public:
  struct Way {
    int port = 0;
    size_t bytes = 0;
  };
  explicit Proxy(const std::vector<Way>& ways) : thread_([this, ways] { run(ways); }) {}
  ~Proxy() {
    end_ = true;
    thread_.join();
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  int port() const { return listener_.address().port(); }
  size_t connections() const { return connections_; }

 private:
  void run(const std::vector<Way>& ways) {
    for (const Way& way : ways) {
      TcpAddress from;
      Descriptor host;
      while (!end_ && !(host = listener_.accept(from))) std::this_thread::sleep_for(1ms);
      if (end_) return;
      ++connections_;
      const Descriptor host_0 = stranger(way.port, "");
      std::array<char, 4096> buffer{};
      for (size_t left = way.bytes; left > 0 && !end_;) {
        ssize_t n = recv(host.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (n == 0) break;
        if (n > 0) send(host_0.get(), buffer.data(), static_cast<size_t>(n), MSG_NOSIGNAL);
        n = recv(host_0.get(), buffer.data(), std::min(left, buffer.size()), MSG_DONTWAIT);
        if (n == 0) break;
        if (n > 0) send(host.get(), buffer.data(), static_cast<size_t>(n), MSG_NOSIGNAL);
        if (n > 0) left -= static_cast<size_t>(n);
        if (n < 0) std::this_thread::sleep_for(1ms);
      }
    }
  }

  TcpListener listener_{numeric_address("127.0.0.1", 0).value()};
  std::atomic<bool> end_ = false;
  std::atomic<size_t> connections_ = 0;
  std::thread thread_;
};

constexpr size_t kFrame = kFrameHeader + sizeof(Digest);  // without its payload
constexpr size_t kChallenge = kFrame + sizeof(Nonce);
constexpr size_t kProof = kFrame + sizeof(LaunchId) + sizeof(Digest);

TEST_CASE("a host whose connection closes before the welcome tries again") {
  auto hosts = pretended_hosts({1, 1});
  const int port = hosts[0].world.master.port;
  const Proxy proxy({{port, kChallenge},
                     {port, kChallenge + kProof},
                     {port, std::numeric_limits<size_t>::max()}});
  hosts[1].world.master.port = proxy.port();
  for (const std::string& e : on_each_host(hosts, join_and_leave)) CHECK(e == "");
  CHECK(proxy.connections() == 3);
}

TEST_CASE("a host does not join another launch") {
  const auto first = pretended_hosts({1, 1}), second = pretended_hosts({1, 1});
  const Proxy proxy({{first[0].world.master.port, kChallenge + kProof},
                     {second[0].world.master.port, std::numeric_limits<size_t>::max()}});
  std::thread hosts_0([&] { on_each_host({first[0], second[0]}, join_and_leave); });
  PretendedHost host_1 = first[1];
  host_1.world.master.port = proxy.port();
  CHECK(on_each_host({host_1}, join_and_leave)[0] ==
        fmt::format(
            "host 0 at 127.0.0.1:{} was started again after this host had found it, or another "
            "run listens there: start all hosts again, and give each run its own port",
            proxy.port()));
  for (const PretendedHost& p : {first[1], second[1]})  // ends both
    tell_hosts_of_failure(p.world, "the test ends", p.trust, p.settings);
  hosts_0.join();
}

TEST_CASE("host 0 that ends while hosts wait is told within seconds") {
  auto hosts = pretended_hosts({1, 1});
  hosts[1].settings.gathering.gone_s = 0.3;
  std::string error;
  {
    std::optional<TcpListener> listener(
        numeric_address("127.0.0.1", hosts[0].world.master.port).value());
    std::thread host_1([&] { error = on_each_host({hosts[1]}, join_and_leave)[0]; });
    TcpAddress from;
    Descriptor socket;
    while (!(socket = listener->accept(from))) std::this_thread::sleep_for(1ms);
    Connection c(std::move(socket));
    const Handshake handshake(hosts[0].trust.secret, hosts[0].world.run_id);
    const Nonce own = random_nonce();
    Nonce other;
    const LaunchId launch = random_launch_id();
    c.send(FrameType::challenge, own);
    c.reader().accept(FrameType::response, 2 * sizeof(Digest));
    std::ranges::copy(ByteReader(next_frame(c).payload).raw(sizeof other), other.begin());
    ByteWriter proof;
    proof.raw(launch);
    proof.raw(handshake.digest(Handshake::Role::proof, own, other, launch));
    c.send(FrameType::proof, proof.bytes());
    c.flush();
    listener.reset();
    c.close();
    host_1.join();
  }
  CHECK(error ==
        fmt::format("host 0 at 127.0.0.1:{} no longer answers, and not all hosts had connected: "
                    "Connection refused; read its own message, then start all hosts again",
                    hosts[0].world.master.port));
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
