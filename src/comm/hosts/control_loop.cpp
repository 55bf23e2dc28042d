#include "comm/hosts/control_loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "comm/heartbeat.h"
#include "comm/hosts/bytes.h"
#include "comm/link_activity.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kGoodbyeS = 2;

}  // namespace

ControlLoop::ControlLoop(GatheredHosts hosts, const ChannelSettings& settings)
    : host(hosts.host),
      map(std::move(hosts.map)),
      settings_(settings),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) fail(Fault::rank, "cannot create an event descriptor");
  for (Connection& connection : hosts.peers) {
    PeerHost p{.host = host == 0 ? static_cast<int>(peers_.size()) + 1 : 0,
               .connection = std::move(connection)};
    FrameReader& reader = p.connection.reader();
    reader.accept(FrameType::beat, kBeatBytes);
    reader.accept(FrameType::abort, Team::kLongestReason);
    reader.accept(FrameType::goodbye, 0);
    if (host == 0) {
      reader.accept(FrameType::stop, sizeof(int));
      reader.accept(FrameType::gather, kLongestGathered);
      reader.accept(FrameType::ready, sizeof(uint64_t));
    }
    peers_.push_back(std::move(p));
  }
  thread_ = start_without_signals([this] { run(); });
}

void ControlLoop::wake() const noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_.get(), &one, sizeof one);
}

void ControlLoop::run() noexcept {
  std::unique_lock lock(mutex_);
  while (!leaving_) {
    for (PeerHost& p : peers_) serve(p);
    look_at_time();
    look_at_team();
    if (failure_.empty()) {
      advance_gather();
      advance_broadcast();
    }
    for (PeerHost& p : peers_) serve(p);
    wait_for_news(lock);
  }
  if (with_goodbye_) say_goodbye(lock);
}

// Unlocks the mutex while it waits.
void ControlLoop::wait_for_news(std::unique_lock<std::mutex>& lock) {
  std::vector<pollfd> news = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  for (const PeerHost& p : peers_) {
    if (!p.connection) continue;
    const int events = POLLIN | (p.connection.queued() > 0 ? POLLOUT : 0);
    news.push_back({.fd = p.connection.get(), .events = static_cast<short>(events), .revents = 0});
  }
  const Clock::time_point next_beat = next_beat_;
  lock.unlock();
  const double to_beat = std::chrono::duration<double>(next_beat - Clock::now()).count();
  const double most = std::min(settings_.look_s, to_beat);
  poll(news.data(), news.size(), std::max(1, static_cast<int>(most * 1000)));
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(wake_.get(), &count, sizeof count);
  lock.lock();
}

// Reads and writes what is possible without waiting.
void ControlLoop::serve(PeerHost& p) noexcept {
  if (!p.connection) return;
  try {
    constexpr int kMostAtOnce = 64;  // a peer that sends all the time must not hold up the others
    for (int i = 0; i < kMostAtOnce; ++i) {
      const std::optional<Frame> frame = p.connection.receive();
      if (!frame) break;
      try {
        handle(p, *frame);
      } catch (const ConnectionLost&) {
        throw;
      } catch (const Error& e) {
        throw ConnectionLost(e.what(), false);
      }
      if (!p.connection) return;
    }
    p.connection.flush();
  } catch (const ConnectionLost& e) {
    lost(p, e);
  }
}

void ControlLoop::lost(PeerHost& p, const ConnectionLost& e) {
  p.connection.close();
  if (p.gone || !failure_.empty()) return;
  p.gone = true;
  const std::string who = map.name_of_rank(p.host), where = position_of(p);
  fail_run(e.ended() ? fmt::format("{} ended unexpectedly {}: {}", who, where, e.what())
                     : fmt::format("the connection to {} was lost {}: {}", who, where, e.what()),
           &p);
}

void ControlLoop::handle(PeerHost& p, const Frame& frame) {
  switch (frame.type) {
    case FrameType::beat:
      p.beat = decode_beat(frame.payload);
      if (p.beat.waits_for < -1 || p.beat.waits_for >= map.hosts())
        fail(Fault::rank, "it waits for a host {}", p.beat.waits_for);
      return;
    case FrameType::abort:
      fail_run(decode_text(frame.payload), &p);
      return;
    case FrameType::goodbye:
      p.gone = true;
      return;
    case FrameType::stop: {
      stop_asked_ = ByteReader(frame.payload).number<int>();
      return;
    }
    default:
      handle_collective(p, frame);
  }
}

void ControlLoop::send_to_all(FrameType type, std::span<const std::byte> payload,
                              const PeerHost* but) {
  for (PeerHost& p : peers_)
    if (p.connection && !p.gone && &p != but) p.connection.send(type, payload);
}

// The first reason is the run's.
void ControlLoop::fail_run(const std::string& reason, const PeerHost* from) {
  if (!failure_.empty()) return;
  failure_ = reason.empty() ? "another host failed" : reason;
  send_to_all(FrameType::abort, encode_text(failure_, Team::kLongestReason), from);
  if (team_) team_->break_up(Team::kOtherHost, failure_);
  if (link_) link_->ended = true;
  changed_.notify_all();
}

// The team's reason, for other hosts: with the rank to blame and its position.
std::string ControlLoop::reason_of_team() const {
  std::string reason = team_->reason();
  if (reason.find(map.name_of(host)) != std::string::npos) return reason;
  const int rank = std::max(0, team_->broken_by());
  const std::string who = map.name_of_rank(host, rank);
  return reason.find("at epoch ") == std::string::npos
             ? fmt::format("{} failed {}: {}", who, team_->where_is(rank), reason)
             : fmt::format("{}: {}", who, reason);
}

void ControlLoop::look_at_team() {
  if (!team_) return;
  if (failure_.empty() && team_->broken()) fail_run(reason_of_team(), nullptr);
  pass_on_stop();
}

void ControlLoop::pass_on_stop() {
  const int signal = team_->stop_word().load(std::memory_order_relaxed);
  if (host == 0) {
    int nothing = 0;
    if (stop_asked_ != 0) team_->stop_word().compare_exchange_strong(nothing, stop_asked_);
    return;
  }
  if (signal == 0 || stop_asked_ != 0) return;
  stop_asked_ = signal;
  ByteWriter payload;
  payload.number(signal);
  send_to_all(FrameType::stop, payload.bytes());
}

void ControlLoop::watch(Team team, LinkActivity* link) {
  {
    const std::lock_guard lock(mutex_);
    team_ = team;
    link_ = link;
    if (!failure_.empty()) {
      team_->break_up(Team::kOtherHost, failure_);
      if (link_) link_->ended = true;
    }
  }
  wake();
}

void ControlLoop::data_failed(int peer, const std::string& why) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(settings_.patience_s),
                    [&] { return !failure_.empty() || leaving_; });
  if (failure_.empty() && peer == host) {
    fail_run(why, nullptr);
    wake();
  } else if (failure_.empty()) {
    const PeerHost& nearest = peers_[host == 0 ? static_cast<size_t>(peer - 1) : 0];
    fail_run(fmt::format("the exchange of data with {} failed {}: {}", map.name_of_rank(peer),
                         position_of(nearest), why),
             nullptr);
    wake();
  }
  throw_failure();
}

// Sends what is queued and goodbye, and ends the connections in good order.
void ControlLoop::say_goodbye(std::unique_lock<std::mutex>& lock) noexcept {
  look_at_team();  // a reason that the others do not know yet
  send_to_all(FrameType::goodbye, {});
  const Deadline deadline = deadline_in(kGoodbyeS);
  const auto queued = [&] {
    return std::ranges::any_of(
        peers_, [](const PeerHost& p) { return p.connection && p.connection.queued() > 0; });
  };
  for (PeerHost& p : peers_) p.gone = true;  // what happens to the connection is no failure
  for (;;) {
    for (PeerHost& p : peers_) serve(p);
    if (!queued() || Clock::now() >= deadline) break;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  for (PeerHost& p : peers_)
    if (p.connection) shutdown(p.connection.get(), SHUT_WR);
}

void ControlLoop::give_up(const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  fail_run(fmt::format("{}: {}", map.name_of(host), why), nullptr);
}

void ControlLoop::end(bool with_goodbye) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (leaving_) return;
    leaving_ = true;
    with_goodbye_ = with_goodbye;
    changed_.notify_all();
  }
  wake();
  thread_.join();
}

}  // namespace dpt
