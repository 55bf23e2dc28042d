// gloo 0.5's connections with what a Link needs of them: notice of every event, the reason of a
// failure, and no exception out of gloo's own thread, which would end the process.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>

namespace dpt::gloo_module {

// Counts what happens on all connections of a link, so that its thread can wait for the next
// event. Thread: any.
class Events {
 public:
  void signal();
  uint64_t count() const;
  // Waits until count() differs from `seen`, at most so long.
  void wait_past(uint64_t seen, std::chrono::milliseconds limit) const;
  // From now on moved() increments this, which lives longer. Call it before any connection.
  void count_moves_in(std::atomic<uint64_t>& count) { moves_ = &count; }
  void moved() {
    if (moves_) ++*moves_;
  }

 private:
  std::atomic<uint64_t>* moves_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  uint64_t count_ = 0;
};

// Identifies messages to gloo: the tag, and the length, so that no message ever arrives in memory
// of another length. Lengths of 2 GiB and more are told apart by their low bits.
uint64_t slot_of(uint32_t tag, size_t bytes);
// The length of a slot's messages; null: 2 GiB or more.
std::optional<size_t> bytes_of(uint64_t slot);

// The connection to one host.
class Pair final : public gloo::transport::tcp::Pair {
 public:
  using Clock = std::chrono::steady_clock;

  // REQUIRES: context, device and events live longer.
  Pair(gloo::transport::tcp::Context* context, gloo::transport::tcp::Device* device, int peer,
       std::chrono::milliseconds timeout, Events& events);
  ~Pair() override;

  void handleEvents(int events) override;

  // Why the connection was closed; empty: it is open. Thread: any.
  std::string failure() const;
  bool closed() const { return closed_; }
  // When data last went either way.
  Clock::time_point last_active() const { return Clock::time_point(Clock::duration(active_)); }
  // Whether a send of this slot has not been matched by the other host yet. False if that cannot
  // be found out without waiting.
  bool has_unmatched_send(uint64_t slot);

 protected:
  bool read() override;
  bool write(gloo::transport::tcp::Op& op) override;
  void changeState(state next) noexcept override;

 private:
  void note_activity();

  Events& events_;
  std::atomic<Clock::rep> active_;
  std::atomic<bool> closed_ = false;
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

// The connections to all hosts.
class Context final : public gloo::transport::tcp::Context {
 public:
  Context(std::shared_ptr<gloo::transport::tcp::Device> device, int host, int hosts,
          Events& events);

  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override;
  Pair& pair(int peer) { return static_cast<Pair&>(*pairs_[peer]); }

  // The slot that `peer` uses for the message of this slot's tag, if that is known to be another
  // slot: then the lengths differ, and neither message will ever be complete.
  std::optional<uint64_t> other_slot(int peer, uint64_t slot, bool sending);

 private:
  Events& events_;
};

// Memory for one send or one receive.
class Buffer final : public gloo::transport::tcp::UnboundBuffer {
 public:
  using UnboundBuffer::UnboundBuffer;
  // Whether it has been sent, or has arrived. Does not block.
  bool complete();
};

// Blocks SIGPIPE in this thread, and discards one that was raised meanwhile: gloo writes to
// connections that the other host may have closed.
class SigpipeBlocked {
 public:
  SigpipeBlocked();
  ~SigpipeBlocked();
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  bool was_blocked_ = false, was_pending_ = false;
};

// While it lives, this thread and those that it starts block all signals.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Opens gloo's TCP on the interface with this numeric address. Its thread blocks all signals.
// Throws std::exception, Error{rank} for an address that is not numeric.
std::shared_ptr<gloo::transport::tcp::Device> open_device(const std::string& address);

// gloo's message without the source location that it begins with, and without the peer's address.
std::string plain_text(const std::string& message);

}  // namespace dpt::gloo_module
