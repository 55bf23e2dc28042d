#include "comm/links/memory_link.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "comm/links/basic_link.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

class MemoryNetworkState {
 public:
  // One side of a message.
  struct Side {
    int peer = 0;
    uint32_t tag = 0;
    bool sending = false;
    std::byte* data = nullptr;
    size_t bytes = 0;
    bool complete = false;
    std::string failure;  // empty: none
  };
  using SharedSide = std::shared_ptr<Side>;

  // Messages of one sender, receiver and tag, in order: sides that have no counterpart yet, and
  // pairs of sides that are under way.
  struct Channel {
    struct Pair {
      SharedSide send, receive;
      Clock::time_point due;
    };
    std::deque<SharedSide> sends, receives;
    std::deque<Pair> pairs;

    void fail_all(const std::string& failure) {
      for (auto* sides : {&sends, &receives}) {
        for (const SharedSide& s : *sides) s->failure = failure;
        sides->clear();
      }
      for (const Pair& p : pairs) p.send->failure = p.receive->failure = failure;
      pairs.clear();
    }
  };

  MemoryNetworkState(int number, double limit_s)
      : hosts(number), timeout_s(limit_s), changed_(number), gone_(number) {}

  const int hosts;
  const double timeout_s;

  SharedSide begin(int host, Side side) {
    const std::lock_guard lock(mutex_);
    auto own = std::make_shared<Side>(std::move(side));
    if (gone_[own->peer] || gone_[host]) {
      own->failure = kClosedText;
      return own;
    }
    Channel& c = own->sending ? channels_[{host, own->peer, own->tag}]
                              : channels_[{own->peer, host, own->tag}];
    (own->sending ? c.sends : c.receives).push_back(own);
    if (!c.sends.empty() && !c.receives.empty()) {
      match(c, own->sending ? host : own->peer);
      deliver();
    }
    return own;
  }

  bool poll(const Side& side) {
    const std::lock_guard lock(mutex_);
    deliver();
    return settled(side);
  }

  // On `host`: waits until its side is complete, or for `ended` or a failure. False: the time limit
  // has passed, which there is if `limited`.
  bool wait(int host, const Side& side, bool limited, const std::function<bool()>& ended) {
    std::unique_lock lock(mutex_);
    uint64_t seen = delivered_;
    Clock::time_point deadline = Clock::now() + duration(timeout_s);
    for (;;) {
      deliver();
      if (settled(side) || ended()) return true;
      if (std::exchange(seen, delivered_) != delivered_)
        deadline = Clock::now() + duration(timeout_s);
      if (limited && Clock::now() >= deadline) return false;
      changed_[host].wait_until(lock, limited ? std::min(deadline, next_due()) : next_due());
    }
  }

  std::string failure(const Side& side) const {
    const std::lock_guard lock(mutex_);
    return side.complete ? "" : side.failure;
  }

  void wake() {
    const std::lock_guard lock(mutex_);
    wake_all();
  }

  void drop(int host) {
    const std::lock_guard lock(mutex_);
    gone_[host] = true;
    for (auto& [key, channel] : channels_)
      if (std::get<0>(key) == host || std::get<1>(key) == host) channel.fail_all(kClosedText);
    std::erase_if(under_way_, [](const Channel* c) { return c->pairs.empty(); });
    wake_all();
  }
  void delay(double seconds) {
    const std::lock_guard lock(mutex_);
    delay_s_ = seconds;
  }
  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    deliver();
    wake_all();
  }
  void reorder(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    order_ = std::mt19937_64(seed);
    reorders_ = true;
  }
  void truncate_next(int from, int to) {
    const std::lock_guard lock(mutex_);
    truncated_.emplace(from, to);
  }
  uint64_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  void wake_all() {
    for (std::condition_variable& c : changed_) c.notify_all();
  }
  void wake_hosts_of(const Channel::Pair& pair) {
    changed_[pair.send->peer].notify_all();
    changed_[pair.receive->peer].notify_all();
  }

  static bool settled(const Side& side) { return side.complete || !side.failure.empty(); }

  void match(Channel& c, int from) {
    Channel::Pair pair{.send = c.sends.front(),
                       .receive = c.receives.front(),
                       .due = Clock::now() + duration(delay_s_)};
    c.sends.pop_front();
    c.receives.pop_front();
    const size_t cut = truncated_.erase({from, pair.send->peer});
    const size_t arriving = pair.send->bytes - cut;
    if (arriving != pair.receive->bytes) {
      pair.send->failure = length_text(pair.receive->bytes, pair.send->bytes, true, pair.send->tag);
      pair.receive->failure = length_text(arriving, pair.receive->bytes, false, pair.send->tag);
      wake_hosts_of(pair);
      return;
    }
    c.pairs.push_back(std::move(pair));
    if (c.pairs.size() == 1) under_way_.push_back(&c);
  }

  void deliver() {
    if (held_) return;
    for (;;) {
      std::vector<Channel*> ready;
      for (Channel* c : under_way_)
        if (c->pairs.front().due <= Clock::now()) ready.push_back(c);
      if (ready.empty()) return;
      Channel& c = *ready[reorders_ ? order_() % ready.size() : 0];
      const Channel::Pair pair = std::move(c.pairs.front());
      c.pairs.pop_front();
      if (c.pairs.empty()) std::erase(under_way_, &c);
      if (pair.send->bytes > 0) std::memcpy(pair.receive->data, pair.send->data, pair.send->bytes);
      pair.send->complete = pair.receive->complete = true;
      bytes_ += pair.send->bytes;
      ++delivered_;
      wake_hosts_of(pair);
      // One at a time, so that the host that waits for one message does not get all others first.
      if (reorders_) return;
    }
  }

  Clock::time_point next_due() const {
    // With reorder() a message that is due may wait for the next call.
    Clock::time_point next = Clock::now() + (reorders_ ? duration(0.001) : duration(0.1));
    for (const Channel* c : under_way_)
      if (!held_)
        next = std::min(next, std::max(c->pairs.front().due, Clock::now() + duration(1e-4)));
    return next;
  }

  mutable std::mutex mutex_;
  std::vector<std::condition_variable> changed_;                // [hosts]
  std::map<std::tuple<int, int, uint32_t>, Channel> channels_;  // by sender, receiver, tag
  std::vector<Channel*> under_way_;                             // those with pairs
  std::vector<bool> gone_;
  std::set<std::pair<int, int>> truncated_;
  std::mt19937_64 order_;
  bool reorders_ = false, held_ = false;
  double delay_s_ = 0;
  uint64_t bytes_ = 0, delivered_ = 0;
};

namespace {

class MemoryLink final : public BasicLink {
  using Side = MemoryNetworkState::Side;
  using SharedSide = MemoryNetworkState::SharedSide;

 public:
  MemoryLink(int host, const std::shared_ptr<MemoryNetworkState>& network)
      : MemoryLink({.host = host, .hosts = network->hosts, .timeout_s = network->timeout_s},
                   network) {}
  MemoryLink(const LinkWorld& world, std::shared_ptr<MemoryNetworkState> network)
      : BasicLink(world), network_(std::move(network)) {}
  ~MemoryLink() override { network_->drop(host()); }

  Request send(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    return begin({.peer = peer,
                  .tag = tag,
                  .sending = true,
                  .data = const_cast<std::byte*>(bytes.data()),
                  .bytes = bytes.size()});
  }
  Request receive(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    return begin({.peer = peer, .tag = tag, .data = bytes.data(), .bytes = bytes.size()});
  }

  void wait(Request request) override {
    const SharedSide side = sides_.find(request);
    const Waiting waiting(*this, side->peer);
    if (!network_->wait(host(), *side, limits_messages(), [&] { return ended(); }))
      fail_peer(side->peer, silent_text(timeout_s()));
    check(*side);
    note_progress();
    count(side->sending, side->bytes);
    sides_.erase(request);
  }

  bool done(Request request) override {
    const SharedSide side = sides_.find(request);
    const bool settled = network_->poll(*side);
    check(*side);
    return settled;
  }

  void abort() noexcept override {
    if (!set_aborted()) return;
    network_->drop(host());
    network_->wake();
  }

 private:
  Request begin(Side side) {
    check_peer(side.peer);
    check_not_ended();
    return sides_.add(network_->begin(host(), std::move(side)));
  }
  void check(const Side& side) {
    check_not_ended();
    if (const std::string failure = network_->failure(side); !failure.empty())
      fail_peer(side.peer, failure);
  }

  const std::shared_ptr<MemoryNetworkState> network_;
  Transfers<SharedSide> sides_;
};

}  // namespace

MemoryNetwork::MemoryNetwork(int hosts, double timeout_s)
    : state_(std::make_shared<MemoryNetworkState>(hosts, timeout_s)) {}

std::unique_ptr<Link> MemoryNetwork::connect(int host) {
  return std::make_unique<MemoryLink>(host, state_);
}
ConnectLink MemoryNetwork::connector() {
  return [state = state_](const LinkWorld& world) -> std::unique_ptr<Link> {
    require(world.hosts == state->hosts, "a link in memory has its network's number of hosts");
    return std::make_unique<MemoryLink>(world, state);
  };
}
void MemoryNetwork::drop(int host) { state_->drop(host); }
void MemoryNetwork::delay(double seconds) { state_->delay(seconds); }
void MemoryNetwork::hold(bool held) { state_->hold(held); }
void MemoryNetwork::reorder(uint64_t seed) { state_->reorder(seed); }
void MemoryNetwork::truncate_next(int from, int to) { state_->truncate_next(from, to); }
uint64_t MemoryNetwork::bytes() const { return state_->bytes(); }

}  // namespace dpt
