// libdptrain_gloo.so: Link over gloo's TCP, by its messages between two hosts ("unbound buffers").
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gloo/config.h>

#include "comm/links/basic_link.h"
#include "comm/links/module.h"
#include "comm/links/modules/gloo_pair.h"

namespace dpt::gloo_module {
namespace {

using std::chrono::milliseconds;
using Clock = Pair::Clock;

constexpr milliseconds kCheckEvery{100};

struct Transfer {
  int peer = 0;
  uint32_t tag = 0;
  bool sending = false;
  size_t bytes = 0;
  std::unique_ptr<Buffer> buffer;
  Clock::time_point checked = Clock::now();
};

std::string unequal_text(const Transfer& t, std::optional<size_t> of_peer) {
  if (of_peer) return length_text(*of_peer, t.bytes, t.sending, t.tag);
  return fmt::format("its message of tag {} has another length than the {} bytes of this host",
                     t.tag, t.bytes);
}

class GlooLink final : public BasicLink {
 public:
  explicit GlooLink(const LinkWorld& world) : BasicLink(world) {
    if (hosts() == 1) return;
    events_.count_moves_in(moved());
    const SigpipeBlocked guard;
    try {
      const auto device = open_device(world.address);
      context_ = std::make_shared<Context>(device, host(), hosts(), events_);
      // gloo waits five times as long for a connection.
      context_->setTimeout(
          std::max(milliseconds(1), milliseconds(static_cast<int64_t>(timeout_s() * 200))));
      for (int peer = 0; peer < hosts(); ++peer)
        if (peer != host()) context_->createPair(peer);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      fail(Fault::rank, "gloo cannot use the network interface {}: {}", world.address,
           plain_text(e.what()));
    }
    const EndWatch watch(*this);
    connect(world);
  }

  ~GlooLink() override {
    // Memory of transfers that were not waited for is no longer written to.
    if (!transfers_.empty()) close();
    transfers_.clear();
    context_.reset();
  }

  Request send(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    return begin(peer, tag, true, const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  Request receive(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    return begin(peer, tag, false, bytes.data(), bytes.size());
  }

  void wait(Request request) override {
    Transfer& t = transfers_.find(request);
    const Waiting waiting(*this, t.peer);
    const Clock::time_point began = Clock::now();
    const milliseconds limit(static_cast<int64_t>(timeout_s() * 1000));
    for (;;) {
      const uint64_t seen = events_.count();
      if (is_complete(t)) break;
      if (limits_messages() &&
          Clock::now() > std::max(began, context_->pair(t.peer).last_active()) + limit)
        fail_peer(t.peer, silent_text(timeout_s()));
      events_.wait_past(seen, std::min(kCheckEvery, limit));
    }
    count(t.sending, t.bytes);
    transfers_.erase(request);
  }

  bool done(Request request) override { return is_complete(transfers_.find(request)); }

  void abort() noexcept override {
    if (!set_aborted()) return;
    close();
    events_.signal();
  }

 private:
  // All hosts exchange the addresses that they listen on, one for each other host, and a number
  // that only hosts of this run know: gloo takes any connection for that of the expected host.
  void connect(const LinkWorld& world) {
    using Number = std::array<char, 8>;
    Number own;
    std::random_device random;
    std::generate(own.begin(), own.end(), [&] { return static_cast<char>(random()); });
    std::string text(own.begin(), own.end());
    size_t address_bytes = 0;
    for (int peer = 0; peer < hosts(); ++peer) {
      if (peer == host()) continue;
      const std::vector<char> address = context_->pair(peer).address().bytes();
      address_bytes = address.size();
      text.append(address.begin(), address.end());
    }
    const std::vector<std::string> all = world.all_gather(text);
    require(all.size() == static_cast<size_t>(hosts()), "all_gather() returns a text per host");
    for (int peer = 0; peer < hosts(); ++peer) {
      if (peer == host()) continue;
      check_not_ended();
      if (all[peer].size() != text.size()) fail_peer(peer, "it has another version of gloo");
      const size_t place = own.size() + address_bytes * (host() < peer ? host() : host() - 1);
      try {
        const char* const address = all[peer].data() + place;
        context_->pair(peer).connect(std::vector<char>(address, address + address_bytes));
      } catch (const std::exception& e) {
        check_not_ended();
        fail_peer(peer, fmt::format("gloo cannot connect from {}: {}", world.address,
                                    plain_text(e.what())));
      }
    }
    greet(all, own);
  }

  // While it lives, a thread closes all connections if the run ends. gloo's connect() then returns;
  // it looks at nothing else.
  class EndWatch {
   public:
    explicit EndWatch(GlooLink& link) {
      const SignalsBlocked guard;
      thread_ = std::thread([this, &link] {
        std::unique_lock lock(mutex_);
        while (!left_ && !link.ended()) changed_.wait_for(lock, kCheckEvery);
        if (!left_) link.close();
      });
    }
    ~EndWatch() {
      {
        const std::lock_guard lock(mutex_);
        left_ = true;
      }
      changed_.notify_one();
      thread_.join();
    }
    EndWatch(const EndWatch&) = delete;
    EndWatch& operator=(const EndWatch&) = delete;

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool left_ = false;
    std::thread thread_;
  };

  template <class Number>
  void greet(const std::vector<std::string>& all, const Number& own) {
    constexpr uint32_t kTag = ~uint32_t{0};
    std::vector<Number> sent(hosts()), received(hosts());
    try {
      std::vector<Request> requests;
      for (int peer = 0; peer < hosts(); ++peer) {
        if (peer == host()) continue;
        std::copy_n(all[peer].begin(), own.size(), sent[peer].begin());
        requests.push_back(send(peer, kTag, std::as_bytes(std::span(sent[peer]))));
        requests.push_back(receive(peer, kTag, std::as_writable_bytes(std::span(received[peer]))));
      }
      for (const Request r : requests) wait(r);
    } catch (...) {
      close();  // before the memory of messages goes
      throw;
    }
    for (int peer = 0; peer < hosts(); ++peer)
      if (peer != host() && received[peer] != own)
        fail_peer(peer, "the connection came from outside the run; use a closed network");
    reset_counts();
  }

  Request begin(int peer, uint32_t tag, bool sending, std::byte* data, size_t bytes) {
    check_peer(peer);
    check_not_ended();
    const Request request =
        transfers_.add({.peer = peer, .tag = tag, .sending = sending, .bytes = bytes});
    Transfer& t = transfers_.find(request);
    const SigpipeBlocked guard;
    try {
      t.buffer = std::make_unique<Buffer>(context_, data, bytes);
      if (sending)
        t.buffer->send(peer, slot_of(tag, bytes), 0, bytes);
      else
        t.buffer->recv(peer, slot_of(tag, bytes), 0, bytes);
    } catch (const std::exception& e) {
      check_not_ended();
      fail_peer(peer, plain_text(e.what()));
    }
    return request;
  }

  // Throws if the transfer can no longer become complete.
  bool is_complete(Transfer& t) {
    check_not_ended();
    if (t.buffer->complete()) return true;
    if (context_->pair(t.peer).closed()) {
      if (t.buffer->complete()) return true;
      check_not_ended();
      fail_peer(t.peer, context_->pair(t.peer).failure());
    }
    if (const auto now = Clock::now(); now > t.checked + kCheckEvery) {
      t.checked = now;
      const uint64_t slot = slot_of(t.tag, t.bytes);
      if (const auto other = context_->other_slot(t.peer, slot, t.sending))
        fail_peer(t.peer, unequal_text(t, bytes_of(*other)));
    }
    return false;
  }

  void close() noexcept {
    for (int peer = 0; peer < hosts() && context_; ++peer) {
      if (peer == host()) continue;
      try {
        context_->pair(peer).close();
      } catch (const std::exception&) {  // the others are closed nevertheless
      }
    }
  }

  // In this order: gloo's thread signals events until the context has ended.
  Events events_;
  std::shared_ptr<Context> context_;
  Transfers<Transfer> transfers_;
};

class GlooModule final : public LinkModule {
 public:
  std::string build() const override {
    return fmt::format("gloo {}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  }
  void start() override {}
  void stop() noexcept override {}
  std::unique_ptr<Link> connect(const LinkWorld& world) override {
    return std::make_unique<GlooLink>(world);
  }
};

}  // namespace
}  // namespace dpt::gloo_module

extern "C" __attribute__((visibility("default"))) const dpt::LinkModuleEntry*
dptrain_link_module() {
  return dpt::link_module_entry<dpt::gloo_module::GlooModule>();
}
