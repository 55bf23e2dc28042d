// What connected hosts say to each other.
#include "comm/hosts/control_channel.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <numeric>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "comm/hosts/pretended_hosts.h"
#include "comm/link_activity.h"

namespace dpt {
namespace {

using namespace std::chrono_literals;

// A team of one rank, as a host with one rank has.
struct OwnTeam {
  SharedMemory memory = SharedMemory::create_private(Team::bytes({}));
  Team team = Team::create(memory.span(), {});
};

void wait_until(const std::function<bool()>& done) {
  for (int i = 0; i < 30'000 && !done(); ++i) std::this_thread::sleep_for(1ms);
}

TEST_CASE("strings are gathered on all hosts, as often as wanted") {
  for (const size_t n : {2U, 3U, 5U}) {
    const auto hosts = pretended_hosts(std::vector<int>(n, 1));
    std::atomic<int> wrong = 0;
    const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
      const auto channel = join(p);
      for (int round = 0; round < 20; ++round) {
        const auto all = channel->all_gather(fmt::format("{} in {}", channel->host(), round));
        for (size_t h = 0; h < n; ++h)
          wrong += all.size() != n || all[h] != fmt::format("{} in {}", h, round);
      }
      const auto large = channel->all_gather(std::string(kLongestGathered, 'x'));
      wrong += large[n - 1].size() != kLongestGathered;
      channel->goodbye();
    });
    for (const std::string& e : errors) CHECK(e == "");
    CHECK(wrong == 0);
  }
}

TEST_CASE("bytes of host 0 reach all hosts, however many they are") {
  const auto hosts = pretended_hosts({1, 1, 1});
  // Around the size of a chunk, 256 KiB, and more than is queued at once, 1 MiB.
  const std::vector<size_t> sizes = {0, 1, 262143, 262144, 262145, 3'000'001};
  std::atomic<int> wrong = 0;
  const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
    const auto channel = join(p);
    for (const size_t size : sizes) {
      std::vector<std::byte> bytes(size);
      const auto value = [&](size_t i) { return static_cast<std::byte>(i * 7 + size); };
      if (channel->host() == 0)
        for (size_t i = 0; i < size; ++i) bytes[i] = value(i);
      channel->broadcast(bytes);
      for (size_t i = 0; i < size; ++i) wrong += bytes[i] != value(i);
      if (size == 1) channel->all_gather("between");
    }
    channel->goodbye();
  });
  for (const std::string& e : errors) CHECK(e == "");
  CHECK(wrong == 0);
}

TEST_CASE("hosts that expect different sizes of a broadcast end the run") {
  const auto hosts = pretended_hosts({1, 1});
  const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
    const auto channel = join(p);
    std::vector<std::byte> bytes(p.world.host == 0 ? 10 : 20);
    channel->broadcast(bytes);
  });
  for (const std::string& e : errors)
    CHECK(e == "host 1 (hostb) expects 20 bytes, host 0 (hosta) has 10");
}

TEST_CASE("if one host's team breaks up, all teams do, with its reason") {
  for (const int failing : {0, 2}) {
    const auto hosts = pretended_hosts({1, 1, 1});
    std::atomic<int> told = 0;
    std::vector<LinkActivity> links(hosts.size());
    std::vector<std::string> reasons(hosts.size());
    const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
      OwnTeam own;
      const auto channel = join(p);
      const LinkActivity& link = links[static_cast<size_t>(p.world.host)];
      channel->watch(own.team, &links[static_cast<size_t>(p.world.host)]);
      if (p.world.host == failing) own.team.break_up(0, "the disk is full", 1);
      wait_until([&] { return own.team.broken(); });
      auto& reason = reasons[static_cast<size_t>(p.world.host)];
      reason = own.team.reason();
      if (p.world.host != failing) {
        reason += fmt::format(", by {}, code {}", own.team.broken_by(), own.team.exit_code());
        told += own.team.claim_message();
        told += own.team.claim_message();
      }
      try {
        channel->all_gather("");
      } catch (const TeamBroken& e) {
        reason += e.what() == own.team.reason() ? "" : " differs";
      }
      wait_until([&] { return link.ended.load(); });
      channel->goodbye();
    });
    for (const std::string& e : errors) CHECK(e == "");
    for (const LinkActivity& link : links) CHECK(link.ended);
    CHECK(told == 2);  // once on each of the other hosts
    for (int h = 0; h < 3; ++h)
      CHECK(reasons[static_cast<size_t>(h)] ==
            (h == failing
                 ? std::string("the disk is full differs")
                 : fmt::format("rank {0} on host {0} ({1}) failed while starting: the "
                               "disk is full, by -2, code 6",
                               failing, hosts[static_cast<size_t>(failing)].settings.name)));
  }
}

TEST_CASE("a host that ends without goodbye ends the run at once, with its position") {
  auto hosts = pretended_hosts({1, 1, 1});
  for (PretendedHost& p : hosts) p.settings.channel.beat_s = 0.01;
  std::atomic<int> seen = 0;
  std::vector<std::string> reasons(hosts.size());
  const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
    OwnTeam own;
    own.team.set_progress(0, {.epoch = 3, .step = 812, .phase = Phase::training});
    auto channel = join(p);
    channel->watch(own.team);
    std::this_thread::sleep_for(200ms);  // for a beat, which says where the host is
    channel->all_gather("");
    if (p.world.host == 2) {
      channel.reset();
      return;
    }
    wait_until([&] { return own.team.broken(); });
    reasons[static_cast<size_t>(p.world.host)] = own.team.reason();
    ++seen;
    wait_until([&] { return seen == 2; });
    channel->goodbye();
  });
  for (const std::string& e : errors) CHECK(e == "");
  CHECK(
      reasons[0].starts_with("rank 2 on host 2 (hostc) ended unexpectedly at epoch 3, step 812: "));
  CHECK(reasons[1] == reasons[0]);
}

TEST_CASE("if host 0 ends, every other host says so") {
  const auto hosts = pretended_hosts({1, 1, 1});
  std::vector<std::string> reasons(hosts.size());
  on_each_host(hosts, [&](const PretendedHost& p) {
    OwnTeam own;
    auto channel = join(p);
    channel->watch(own.team);
    channel->all_gather("");
    if (p.world.host == 0) return;
    wait_until([&] { return own.team.broken(); });
    reasons[static_cast<size_t>(p.world.host)] = own.team.reason();
    channel->goodbye();
  });
  for (const size_t h : {1U, 2U})
    CHECK(reasons[h].starts_with("rank 0 on host 0 (hosta) ended unexpectedly "));
}

TEST_CASE("a failure before the team is watched breaks it up when it is") {
  const auto hosts = pretended_hosts({1, 1});
  std::string reason;
  const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
    OwnTeam own;  // outlives the channel
    const auto channel = join(p);
    if (p.world.host == 1) return;
    try {
      channel->all_gather("");
    } catch (const Error&) {
    }
    channel->watch(own.team);
    reason = own.team.reason();
  });
  CHECK(reason.starts_with("rank 1 on host 1 (hostb) ended unexpectedly "));
}

TEST_CASE("a host that gives up tells the others why") {
  for (const int failed : {0, 1}) {
    const auto hosts = pretended_hosts({1, 1, 1});
    const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
      const auto channel = join(p);
      if (p.world.host == failed)
        channel->give_up("train.csv cannot be opened");
      else
        channel->all_gather("");
    });
    for (int h = 0; h < 3; ++h)
      CHECK(errors[static_cast<size_t>(h)] ==
            (h == failed ? std::string()
                         : fmt::format("host {} ({}): train.csv cannot be opened", failed,
                                       hosts[static_cast<size_t>(failed)].settings.name)));
  }
}

TEST_CASE("goodbye is no failure, but a collective operation without the host is") {
  const auto hosts = pretended_hosts({1, 1, 1});
  std::atomic<int> left = 0, looked = 0;
  std::vector<std::string> reasons(hosts.size());
  const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
    OwnTeam own;
    const auto channel = join(p);
    channel->watch(own.team);
    if (p.world.host == 2) {
      channel->goodbye();
      ++left;
      return;
    }
    wait_until([&] { return left == 1; });
    std::this_thread::sleep_for(300ms);  // for the goodbye to arrive, and a closed connection
    reasons[static_cast<size_t>(p.world.host)] = own.team.reason();
    ++looked;
    wait_until([&] { return looked == 2; });
    channel->all_gather("");
  });
  CHECK(reasons[0].empty());
  CHECK(reasons[1].empty());
  CHECK(errors[0] ==
        "[broken] rank 2 on host 2 (hostc) ended while starting, but another host waits for it");
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("a stop signal on any host sets host 0's stop word, and only that") {
  const auto hosts = pretended_hosts({1, 1, 1});
  std::atomic<bool> stopped = false;
  std::vector<int> words(hosts.size());
  const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
    OwnTeam own;
    const auto channel = join(p);
    if (p.world.host == 2) own.team.stop_word() = SIGTERM;
    if (p.world.host == 0)
      std::this_thread::sleep_for(200ms);  // it comes before the team is watched
    channel->watch(own.team);
    if (p.world.host == 0) wait_until([&] { return own.team.stop_word() != 0; });
    if (p.world.host == 0) stopped = true;
    wait_until([&] { return stopped.load(); });
    words[static_cast<size_t>(p.world.host)] = own.team.stop_word();
    channel->all_gather("");
    channel->goodbye();
  });
  for (const std::string& e : errors) CHECK(e == "");
  CHECK(words == std::vector{SIGTERM, 0, SIGTERM});
}

}  // namespace
}  // namespace dpt
