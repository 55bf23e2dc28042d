// Hosts that respond, but whose data does not arrive, and where a run was when it ended.
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "comm/hosts/pretended_hosts.h"
#include "comm/link_activity.h"

namespace dpt {
namespace {

using namespace std::chrono_literals;

struct WatchedTeam {
  SharedMemory memory = SharedMemory::create_private(Team::bytes({}));
  Team team = Team::create(memory.span(), {});
  LinkActivity link;
};

bool becomes_true(const std::function<bool()>& done) {
  for (int i = 0; i < 30'000 && !done(); ++i) std::this_thread::sleep_for(1ms);
  return done();
}

std::vector<PretendedHost> quick_hosts(size_t count, double stall_s) {
  auto hosts = pretended_hosts(std::vector<int>(count, 2));
  for (PretendedHost& p : hosts) {
    p.settings.channel.beat_s = 0.02;
    p.settings.channel.silence_s = 60;  // others may keep these threads from running
    p.settings.channel.stall_s = stall_s;
  }
  return hosts;
}

// Runs `body` with each host's watched channel; returns why each team ended.
std::vector<std::string> reasons_of(
    const std::vector<PretendedHost>& hosts,
    const std::function<void(int host, ControlChannel&, WatchedTeam&)>& body) {
  std::vector<std::string> reasons(hosts.size());
  std::atomic<size_t> done = 0;
  const auto errors = on_each_host(hosts, [&](const PretendedHost& p) {
    WatchedTeam own;
    own.team.set_progress(0, {.epoch = 3, .step = 812 + p.world.host, .phase = Phase::training});
    const auto channel = join(p);
    channel->watch(own.team, &own.link);
    channel->all_gather("");
    body(channel->host(), *channel, own);
    reasons[static_cast<size_t>(p.world.host)] = own.team.reason();
    ++done;
    becomes_true([&] { return done == hosts.size(); });
    channel->goodbye();
  });
  for (const std::string& e : errors) CHECK(e == "");
  return reasons;
}

TEST_CASE("hosts that wait for each other's data, of which none moves, end the run") {
  const auto reasons =
      reasons_of(quick_hosts(3, 0.3), [](int host, ControlChannel&, WatchedTeam& own) {
        if (host == 1) std::this_thread::sleep_for(100ms);  // it is not the first that waits
        own.link.waits_for = host == 2 ? 1 : 2;
        becomes_true([&] { return own.team.broken(); });
      });
  for (const std::string& reason : reasons) {
    CAPTURE(reason);
    const bool named = reason.starts_with(
                           "no data has moved between rank 2 on host 1 (hostb) and "
                           "rank 4 on host 2 (hostc) for 0.3 s at epoch 3, step ") ||
                       reason.starts_with(
                           "no data has moved between rank 0 on host 0 (hosta) and "
                           "rank 4 on host 2 (hostc) for 0.3 s at epoch 3, step ");
    CHECK(named);
    CHECK(reason == reasons[0]);
  }
}

TEST_CASE("a host that works is waited for, and so is data that moves") {
  for (const bool works : {true, false}) {
    CAPTURE(works);
    const auto reasons =
        reasons_of(quick_hosts(2, 0.2), [&](int host, ControlChannel&, WatchedTeam& own) {
          own.link.waits_for = host == 0 ? 1 : works ? -1 : 0;
          for (int i = 0; i < 50; ++i) {
            std::this_thread::sleep_for(20ms);
            if (!works && host == 0) ++own.link.moved;
          }
        });
    for (const std::string& reason : reasons) CHECK(reason == "");
  }
}

TEST_CASE("hosts in different collective operations end the run after the time limit") {
  const auto reasons =
      reasons_of(quick_hosts(2, 0.3), [](int host, ControlChannel& channel, WatchedTeam&) {
        std::byte byte{};
        if (host == 0)
          CHECK_THROWS_AS(channel.all_gather(""), TeamBroken);
        else
          CHECK_THROWS_AS(channel.broadcast(std::span(&byte, 1)), TeamBroken);
      });
  for (const std::string& reason : reasons)
    CHECK(
        reason.starts_with("no data has moved between rank 0 on host 0 (hosta) and rank 2 on "
                           "host 1 (hostb) for 0.3 s at epoch 3, step 812, although both "
                           "respond: "));
}

TEST_CASE("a failed exchange of data ends all hosts with the rank and the step") {
  const auto reasons =
      reasons_of(quick_hosts(3, 60), [](int host, ControlChannel& channel, WatchedTeam& own) {
        if (host == 1)
          CHECK_THROWS_AS(channel.data_failed(2, "connection reset by peer"), TeamBroken);
        becomes_true([&] { return own.team.broken(); });
      });
  for (const std::string& reason : reasons)
    CHECK(reason ==
          "the exchange of data with rank 4 on host 2 (hostc) failed at epoch 3, step 813: "
          "connection reset by peer");
}

TEST_CASE("a failed exchange of data has the reason that another host gives") {
  const auto reasons =
      reasons_of(quick_hosts(2, 60), [](int host, ControlChannel& channel, WatchedTeam& own) {
        if (host == 0)
          CHECK_THROWS_AS(channel.data_failed(1, "connection reset by peer"), TeamBroken);
        else
          own.team.break_up(0, "the disk is full", 1);
      });
  CHECK(reasons[0] == "rank 2 on host 1 (hostb) failed at epoch 3, step 813: the disk is full");
  CHECK(reasons[1] == "the disk is full");
}

TEST_CASE("a message has the own position where the last beat of the other host is older") {
  auto hosts = quick_hosts(2, 60);
  for (PretendedHost& p : hosts) p.settings.channel.beat_s = 0.2;
  std::string reason;
  on_each_host(hosts, [&](const PretendedHost& p) {
    WatchedTeam own;
    auto channel = join(p);
    channel->watch(own.team, &own.link);
    channel->all_gather("");
    if (p.world.host == 1) {
      // The other host hears at once that this one saves, although no beat is due.
      own.team.set_progress(0, {.epoch = 1, .step = 9, .phase = Phase::saving});
      std::this_thread::sleep_for(500ms);
      channel.reset();
      return;
    }
    own.team.set_progress(0, {.epoch = 3, .step = 900, .phase = Phase::training});
    becomes_true([&] { return own.team.broken(); });
    reason = own.team.reason();
  });
  CHECK(reason.starts_with("rank 2 on host 1 (hostb) ended unexpectedly at epoch 3, step 900: "));
}

TEST_CASE("a host that saves at the same step is said to save") {
  auto hosts = quick_hosts(2, 60);
  for (PretendedHost& p : hosts) p.settings.channel.beat_s = 30;  // only changes of phase tell
  std::string reason;
  on_each_host(hosts, [&](const PretendedHost& p) {
    WatchedTeam own;
    auto channel = join(p);
    channel->watch(own.team, &own.link);
    channel->all_gather("");
    own.team.set_progress(0, {.epoch = 2, .step = 40 + p.world.host, .phase = Phase::training});
    if (p.world.host == 0) {
      own.team.set_progress(0, {.epoch = 2, .step = 40, .phase = Phase::saving});
      std::this_thread::sleep_for(500ms);
      channel.reset();
      return;
    }
    becomes_true([&] { return own.team.broken(); });
    reason = own.team.reason();
  });
  CHECK(reason.starts_with(
      "rank 0 on host 0 (hosta) ended unexpectedly at epoch 2, step 40 while saving: "));
}

}  // namespace
}  // namespace dpt
