// libdptrain_gloo.so: the cases of all links, and what ends a connection.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fail.h"
#include "comm/links/conformance.h"
#include "comm/links/connect_link.h"
#include "comm/links/gather_files.h"
#include "comm/links/load.h"
#include "comm/links/on_hosts.h"
#include "data/folder.h"
#include "skip.h"

namespace dpt {
namespace {

bool has_gloo() { return loaded_link_module("gloo").module != nullptr; }
ConnectLink gloo() {
  return [](const LinkWorld& world) { return connect_link("gloo", world); };
}

TEST_CASE("links of gloo do what links must do") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  run_cases([](int, double) { return gloo(); });
}

TEST_CASE("with gloo, both sides of a message notice unequal lengths") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  CHECK(on_hosts(2, 10, gloo(), check_sender_notices) == std::vector<std::string>(2));
}

TEST_CASE("a link of gloo that is watched waits without a limit, and shows for whom") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  std::array<LinkActivity, 2> activities;
  const ConnectLink watched = [&](LinkWorld world) {
    world.activity = &activities[static_cast<size_t>(world.host)];
    return connect_link("gloo", world);
  };
  // A limit for connecting, too, so not a very short one.
  const auto errors = on_hosts(2, 1, watched, [&](Link& link) {
    std::array<std::byte, 5> bytes{};
    LinkActivity& of_0 = activities[0];
    if (link.host() == 1) {
      for (int i = 0; i < 5000 && of_0.waits_for != 1; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::seconds(2));  // two limits
      link.wait(link.send(0, 1, bytes));
      return;
    }
    const uint64_t before = of_0.moved;
    link.wait(link.receive(1, 1, bytes));
    check_that(of_0.moved > before, "data that arrives is counted");
    check_that(of_0.waits_for == -1, "it waits for nobody");
  });
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("a link that connects ends with its run") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  LinkActivity activity;
  std::atomic<bool> returned = false;
  const auto connects = [&](LinkWorld world) -> std::unique_ptr<Link> {
    world.activity = &activity;
    const std::jthread end([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      activity.ended = true;
    });
    return connect_link("gloo", world);
  };
  // Goes no further than what hosts tell each other before they connect.
  const auto hangs = [&](LinkWorld world) {
    const auto gather = world.all_gather;
    world.all_gather = [&, gather](const std::string& text) -> std::vector<std::string> {
      gather(text);
      for (int i = 0; i < 20000 && !returned; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      fail(Fault::rank, "it hung");
    };
    return connect_link("gloo", world);
  };
  const auto errors = on_hosts(
      2, 30,
      [&](const LinkWorld& world) -> std::unique_ptr<Link> {
        if (world.host == 1) return hangs(world);
        const std::string text = rank_error([&] { connects(world); });
        returned = true;
        fail(Fault::rank, "{}", text);
      },
      [](Link&) {});
  CHECK(errors == std::vector<std::string>{"the exchange between hosts was aborted", "it hung"});
}

TEST_CASE("gloo refuses what is no address of this machine") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const auto error_of = [](const std::string& address) {
    return on_hosts(
        1, 5,
        [&](const LinkWorld& world) {
          LinkWorld two = world;
          two.hosts = 2;
          two.address = address;
          return connect_link("gloo", two);
        },
        [](Link&) {})[0];
  };
  CHECK(error_of("localhost") == "'localhost' is not the numeric address of a network interface");
  CHECK(error_of("192.0.2.1") ==
        "gloo cannot use the network interface 192.0.2.1: Cannot assign requested address");
}

TEST_CASE("gloo uses addresses of version 6") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  std::ifstream addresses("/proc/net/if_inet6");
  if (skip_without(addresses.peek() != std::ifstream::traits_type::eof(), "IPv6")) return;
  CHECK(on_hosts(2, 10, gloo(), check_order, "::1") == std::vector<std::string>(2));
}

// Host 1 of two, which is no link: it connects to host 0, reads so many bytes and writes `data`.
// Returns host 0's error. cut: bytes that its address lacks.
std::string error_beside(size_t read, const std::vector<uint64_t>& data, size_t cut = 0) {
  GatherThreads gather(2);
  std::thread peer([&] {
    // gloo lets the greater of two addresses connect: 127.0.0.9, of which only the text exists.
    struct Address {
      sockaddr_storage socket{};
      int64_t sequence = -1;
    } own, other;
    auto& v4 = reinterpret_cast<sockaddr_in&>(own.socket);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(1);
    inet_pton(AF_INET, "127.0.0.9", &v4.sin_addr);
    const std::string text =
        "12345678" + std::string(reinterpret_cast<const char*>(&own), sizeof own);
    const std::string of_host = gather(1, text.substr(0, text.size() - cut))[0];
    std::memcpy(&other, of_host.data() + 8, sizeof other);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (cut == 0) ::connect(fd, reinterpret_cast<sockaddr*>(&other.socket), sizeof(sockaddr_in));
    char c;
    for (size_t i = 0; i < read; ++i) ::recv(fd, &c, 1, 0);
    ::send(fd, data.data(), data.size() * sizeof data[0], MSG_NOSIGNAL);
    if (data.empty()) ::shutdown(fd, SHUT_WR);
    while (::recv(fd, &c, 1, 0) > 0) {  // until host 0 closes
    }
    ::close(fd);
  });
  std::string error;
  try {
    connect_link("gloo", {.host = 0,
                          .hosts = 2,
                          .address = "127.0.0.1",
                          .timeout_s = 10,
                          .all_gather = [&](const std::string& own) { return gather(0, own); }});
  } catch (const Error& e) {
    error = e.what();
  }
  peer.join();
  return error;
}

TEST_CASE("a peer that is no link of this run ends with an error, not with the process") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const auto has = [](const std::string& text, const std::string& part) {
    return text.starts_with("host 1: ") && text.ends_with(part);
  };
  CHECK(has(error_beside(0, {}), "connection closed by peer"));
  CHECK(error_beside(0, {}, 1) == "host 1: it has another version of gloo");
  // gloo's header: its bytes and the message's, the kind, slot, offset, length, offset. 1: a
  // message, which no receive has begun for.
  CHECK(has(error_beside(0, {48 + 8, 1, 77, 0, 8, 0, 1}), "unexpected data on its connection"));
  // 2 and 3: announces a message and its receive, once host 0 has. But it is another number.
  constexpr uint64_t kSlot = (uint64_t{0xffffffff} << 32) | 8;
  CHECK(error_beside(
            2 * 48, {48, 3, kSlot, 0, 8, 0, 48, 2, kSlot, 0, 8, 0, 48 + 8, 1, kSlot, 0, 8, 0, 1}) ==
        "host 1: the connection came from outside the run; use a closed network");
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow processes

// Forks `hosts` processes with a link of gloo each. Returns how each ended: its exit code, or minus
// its signal. kills_others: kills the others once host 0 has ended.
std::vector<int> in_processes(int hosts, double timeout_s, bool kills_others,
                              const std::function<int(Link&)>& body) {
  const Folder folder;
  std::vector<pid_t> children;
  for (int host = 0; host < hosts; ++host) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    int code = 99;
    try {
      const auto link =
          connect_link("gloo", {.host = host,
                                .hosts = hosts,
                                .address = fmt::format("127.0.0.{}", host + 1),
                                .timeout_s = timeout_s,
                                .all_gather = gather_files(folder.path(), host, hosts)});
      code = body(*link);
    } catch (const std::exception& e) {
      fmt::print(stderr, "host {}: {}\n", host, e.what());
    }
    _exit(code);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    if (kills_others && child != children[0]) kill(child, SIGKILL);
    waitpid(child, &status, 0);
    codes.push_back(WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
  }
  return codes;
}

TEST_CASE("a process that is killed amid messages is named by the others") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  for (const bool survivors_send : {false, true}) {
    const auto codes = in_processes(3, 60, false, [&](Link& link) {
      constexpr int kVictim = 2;
      std::vector<std::byte> small(1), large(size_t{64} << 20), never(size_t{64} << 20);
      if (link.host() == kVictim) {
        std::vector<Link::Request> first;
        for (const int peer : {0, 1}) first.push_back(link.receive(peer, 0, small));
        for (const int peer : {0, 1})
          survivors_send ? link.receive(peer, 1, peer == 0 ? large : never)
                         : link.send(peer, 1, large);
        for (const Link::Request r : first) link.wait(r);
        return raise(SIGKILL);
      }
      link.wait(link.send(kVictim, 0, small));
      const std::string text = rank_error([&] {
        const auto begin = [&](uint32_t tag, std::span<std::byte> bytes) {
          return survivors_send ? link.send(kVictim, tag, bytes)
                                : link.receive(kVictim, tag, bytes);
        };
        const Link::Request a = begin(1, large), b = begin(2, never);
        link.wait(a);
        link.wait(b);
      });
      check_that(
          text == "host 2: connection closed by peer" || text == "host 2: connection reset by peer",
          text);
      // The survivors still reach one another.
      const int other = 1 - link.host();
      std::vector<std::byte> received(1);
      const Link::Request r = link.receive(other, 3, received), s = link.send(other, 3, small);
      link.wait(r);
      link.wait(s);
      return 0;
    });
    CAPTURE(survivors_send);
    CHECK(codes == std::vector<int>{0, 0, -SIGKILL});
  }
}

TEST_CASE("a process that is stopped is named after the time limit") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const auto codes = in_processes(2, 1, true, [&](Link& link) {
    std::vector<std::byte> bytes(size_t{16} << 20);
    if (link.host() == 1) {
      link.send(0, 1, bytes);
      raise(SIGSTOP);
      return 1;
    }
    std::vector<std::byte> never(1);
    const std::string text = rank_error([&] { link.wait(link.receive(1, 2, never)); });
    check_that(text == "host 1: no data for 1 s", text);
    return 0;
  });
  CHECK(codes == std::vector<int>{0, -SIGKILL});
}

#endif

}  // namespace
}  // namespace dpt
