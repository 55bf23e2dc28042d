#include "comm/links/memory_link.h"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "comm/links/conformance.h"
#include "comm/links/on_hosts.h"

namespace dpt {
namespace {

using namespace std::chrono_literals;

TEST_CASE("links in memory do what links must do") {
  std::vector<std::unique_ptr<MemoryNetwork>> networks;
  const auto engine = [&](int hosts, double timeout_s) {
    networks.push_back(std::make_unique<MemoryNetwork>(hosts, timeout_s));
    return networks.back()->connector();
  };
  run_cases(engine);
  // Also if messages of different tags come in any order, and late.
  run_cases([&](int hosts, double timeout_s) {
    const ConnectLink connector = engine(hosts, timeout_s);
    networks.back()->reorder(hosts);
    networks.back()->delay(0.002);
    return connector;
  });
}

TEST_CASE("in memory, both sides of a message notice unequal lengths") {
  MemoryNetwork network(2, 10);
  CHECK(on_hosts(2, 10, network.connector(), check_sender_notices) == std::vector<std::string>(2));
}

TEST_CASE("a dropped host ends the calls of the others, which name it") {
  MemoryNetwork network(3);
  const auto errors = on_hosts(3, 60, network.connector(), [&](Link& link) {
    std::vector<std::byte> bytes(8);
    if (link.host() == 2) {
      network.drop(2);
      const std::string own = rank_error([&] { link.wait(link.send(0, 1, bytes)); });
      check_that(own == "host 0: connection closed by peer", own);
      return;
    }
    const std::string text = rank_error([&] { link.wait(link.receive(2, 1, bytes)); });
    check_that(text == "host 2: connection closed by peer", text);
    // The others still reach one another.
    const int other = 1 - link.host();
    std::vector<std::byte> sent(8);
    const Link::Request r = link.receive(other, 1, bytes), s = link.send(other, 1, sent);
    link.wait(r), link.wait(s);
  });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("a truncated message is an error of its receiver") {
  MemoryNetwork network(2);
  network.truncate_next(0, 1);
  const auto errors = on_hosts(2, 60, network.connector(), [&](Link& link) {
    std::vector<std::byte> bytes(8);
    if (link.host() == 0)
      rank_error([&] { link.wait(link.send(1, 3, bytes)); });
    else
      check_that(rank_error([&] { link.wait(link.receive(0, 3, bytes)); }) ==
                     "host 0: sends 7 bytes where this host expects 8 (tag 3)",
                 "the lengths are named");
  });
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("a link that is watched waits without a limit, and shows for whom") {
  MemoryNetwork network(2, 0.05);
  LinkActivity activity;
  const auto zero = network.connector()({.host = 0, .hosts = 2, .activity = &activity});
  const auto one = network.connect(1);
  std::array<std::byte, 3> sent{}, received{};
  const auto request = zero->receive(1, 7, received);
  std::jthread sender([&] {
    for (int i = 0; i < 5000 && activity.waits_for != 1; ++i) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(300ms);  // several limits
    one->wait(one->send(0, 7, sent));
  });
  const uint64_t before = activity.moved;
  zero->wait(request);
  CHECK(activity.moved > before);
  CHECK(activity.waits_for == -1);
}

TEST_CASE("the failure of a link is what explains it") {
  MemoryNetwork network(3);
  std::array<std::byte, 3> bytes{};
  const auto explain = [](const LinkFailed& failure) {
    throw Error(Fault::rank, "the end of " + std::to_string(failure.peer()) + " says more than " +
                                 failure.problem());
  };
  const auto link = network.connector()({.host = 0, .hosts = 3, .explain = explain});
  const auto before = link->receive(2, 1, bytes);
  network.drop(2);
  const std::string expected = "the end of 2 says more than connection closed by peer";
  CHECK(rank_error([&] { link->wait(before); }) == expected);
  CHECK(rank_error([&] { link->done(link->send(2, 1, bytes)); }) == expected);
}

TEST_CASE("the end of the run ends a link's calls") {
  MemoryNetwork network(2);
  LinkActivity activity;
  const auto link = network.connector()({.host = 0, .hosts = 2, .activity = &activity});
  std::array<std::byte, 3> bytes{};
  const auto request = link->receive(1, 1, bytes);
  std::jthread end([&] {
    for (int i = 0; i < 5000 && activity.waits_for != 1; ++i) std::this_thread::sleep_for(1ms);
    activity.ended = true;
  });
  const std::string expected = "the exchange between hosts was aborted";
  CHECK(rank_error([&] { link->wait(request); }) == expected);
  CHECK(rank_error([&] { link->send(1, 1, bytes); }) == expected);
}

TEST_CASE("held messages are delivered once they are released") {
  MemoryNetwork network(2);
  network.hold(true);
  const auto a = network.connect(0), b = network.connect(1);
  std::vector<std::byte> sent(5, std::byte{7}), received(5);
  const Link::Request s = a->send(1, 0, sent), r = b->receive(0, 0, received);
  CHECK(!a->done(s));
  CHECK(!b->done(r));
  network.hold(false);
  CHECK(b->done(r));
  b->wait(r);
  a->wait(s);
  CHECK(received == sent);
  CHECK(network.bytes() == 5);
}

}  // namespace
}  // namespace dpt
