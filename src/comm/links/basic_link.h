// What every implementation of Link shares: its place among the hosts, byte counts, its end.
#pragma once

#include <atomic>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "comm/links/link.h"

namespace dpt {

[[noreturn]] inline void fail_peer(const LinkWorld& world, int host, const std::string& what) {
  const LinkFailed failure(host, what);
  if (world.explain) world.explain(failure);
  throw failure;
}

// The messages of all implementations.
inline std::string silent_text(double seconds) { return fmt::format("no data for {} s", seconds); }
inline std::string length_text(size_t of_peer, size_t own, bool sending, uint32_t tag) {
  return fmt::format("{} {} bytes where this host {} {} (tag {})", sending ? "expects" : "sends",
                     of_peer, sending ? "sends" : "expects", own, tag);
}
inline constexpr const char* kClosedText = "connection closed by peer";

// The messages of a link that have begun and were not waited for. References to them stay valid.
template <class T>
class Transfers {
 public:
  using Request = Link::Request;

  Request add(T transfer) {
    all_.emplace(++last_, std::move(transfer));
    return last_;
  }
  T& find(Request request) {
    const auto found = all_.find(request);
    require(found != all_.end(), "a link's request is waited for once");
    return found->second;
  }
  void erase(Request request) { all_.erase(request); }
  void clear() { all_.clear(); }
  bool empty() const { return all_.empty(); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

 private:
  std::unordered_map<Request, T> all_;
  Request last_ = 0;
};

class BasicLink : public Link {
 public:
  int host() const override { return world_.host; }
  int hosts() const override { return world_.hosts; }
  uint64_t bytes_sent() const override { return bytes_sent_; }
  uint64_t bytes_received() const override { return bytes_received_; }

 protected:
  explicit BasicLink(const LinkWorld& world)
      : world_(world), activity_(world.activity ? *world.activity : own_activity_) {
    require(0 <= host() && host() < hosts(), "a link's host is one of its hosts");
  }

  double timeout_s() const { return world_.timeout_s; }
  // Whether a message that makes no progress for timeout_s() is an error.
  bool limits_messages() const { return !world_.activity; }
  [[noreturn]] void fail_peer(int peer, const std::string& what) const {
    dpt::fail_peer(world_, peer, what);
  }

  // Data has gone either way.
  void note_progress() { ++activity_.moved; }
  std::atomic<uint64_t>& moved() { return activity_.moved; }
  // While it lives, this host waits for another one.
  class Waiting {
   public:
    Waiting(BasicLink& link, int peer) : activity_(link.activity_) { activity_.waits_for = peer; }
    ~Waiting() { activity_.waits_for = -1; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    LinkActivity& activity_;
  };

  void check_peer(int peer) const {
    require(0 <= peer && peer < hosts() && peer != host(), "a message goes to another host");
  }
  bool ended() const { return aborted_ || activity_.ended; }
  void check_not_ended() {
    if (!ended()) return;
    abort();
    fail(Fault::rank, "the exchange between hosts was aborted");
  }
  // Returns whether this is the first call.
  bool set_aborted() noexcept { return !aborted_.exchange(true); }

  void count(bool sent, size_t bytes) { (sent ? bytes_sent_ : bytes_received_) += bytes; }
  void reset_counts() { bytes_sent_ = bytes_received_ = 0; }

 private:
  const LinkWorld world_;
  LinkActivity own_activity_;  // nobody reads it
  LinkActivity& activity_;
  std::atomic<bool> aborted_ = false;
  uint64_t bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace dpt
