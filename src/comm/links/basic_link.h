// What every implementation of Link shares: its place among the hosts, byte counts, abort.
#pragma once

#include <atomic>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "comm/links/link.h"

namespace dpt {

// Throws Error{rank} that names the other host.
[[noreturn]] inline void fail_peer(int host, const std::string& what) {
  fail(Fault::rank, "host {}: {}", host, what);
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
  int host() const override { return host_; }
  int hosts() const override { return hosts_; }
  uint64_t bytes_sent() const override { return bytes_sent_; }
  uint64_t bytes_received() const override { return bytes_received_; }

 protected:
  explicit BasicLink(const LinkWorld& world)
      : host_(world.host), hosts_(world.hosts), timeout_s_(world.timeout_s) {
    require(0 <= host_ && host_ < hosts_, "a link's host is one of its hosts");
  }

  double timeout_s() const { return timeout_s_; }

  void check_peer(int peer) const {
    require(0 <= peer && peer < hosts_ && peer != host_, "a message goes to another host");
  }
  void check_not_aborted() const {
    if (aborted_) fail(Fault::rank, "the exchange between hosts was aborted");
  }
  bool aborted() const { return aborted_; }
  // Returns whether this is the first call.
  bool set_aborted() noexcept { return !aborted_.exchange(true); }

  void count(bool sent, size_t bytes) { (sent ? bytes_sent_ : bytes_received_) += bytes; }
  void reset_counts() { bytes_sent_ = bytes_received_ = 0; }

 private:
  const int host_, hosts_;
  const double timeout_s_;
  std::atomic<bool> aborted_ = false;
  uint64_t bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace dpt
