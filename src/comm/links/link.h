// Link: messages between the hosts of a run. One process of each host, the leader, has a link; an
// engine (gloo, MPI) carries the data, and an implementation in memory serves tests. A link neither
// authenticates nor encrypts, and promises no order of sums: it only moves bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/link_activity.h"

namespace dpt {

// Data can no longer be exchanged with a host: "host 2: connection reset by peer".
class LinkFailed : public Error {
 public:
  LinkFailed(int peer, const std::string& problem)
      : Error(Fault::rank, "host " + std::to_string(peer) + ": " + problem),
        peer_(peer),
        problem_(problem) {}
  int peer() const { return peer_; }
  const std::string& problem() const { return problem_; }  // "connection reset by peer"

 private:
  int peer_;
  std::string problem_;
};

// What a link needs to connect, agreed on before (comm/hosts/control_channel.h), and what it uses
// for as long as it lives.
struct LinkWorld {
  int host = 0;
  int hosts = 1;
  // The numeric address of the network interface to use, "10.0.0.2" or "fd00::2".
  std::string address;
  double timeout_s = 60;  // to connect, and for messages of a host to make progress
  // The link reports here what it does, and stops once `ended` is set; it outlives the link.
  // Messages then have no time limit in the link: the reader (ControlChannel) ends the run, since
  // it knows whether the other host still computes or saves. Null: `timeout_s` is the limit.
  LinkActivity* activity = nullptr;
  // Sends `own` to all hosts and returns what each host sent, in the order of hosts. Blocks until
  // all have called it. Throws Error{rank}.
  std::function<std::vector<std::string>(const std::string& own)> all_gather;
  // The thread whose call failed calls it, and it throws the error to report in place of
  // LinkFailed: the link knows only "connection reset by peer", not which rank ended at which step.
  // Null: LinkFailed is thrown.
  std::function<void(const LinkFailed& failure)> explain{};
};

// Messages between two hosts with the same tag arrive in the order in which they were sent. The
// receiver knows the length of every message: a message of another length is an error. A send may
// wait until its receive has begun, so two hosts that send to each other begin to receive before
// they wait. Tags up to 32767 work with every implementation; MPI may refuse others.
//
// Threads: one thread at a time makes all calls, except abort(), which any thread may call.
// Errors: LinkFailed, or what LinkWorld::explain() throws, from wait() or from the call that
// notices it; Error{rank} after abort() or LinkActivity::ended. A link that has thrown is unusable:
// call abort() and destroy it.
class Link {
 public:
  // Identifies a send or receive that has begun; wait() uses it up.
  using Request = uint64_t;

  virtual ~Link() = default;

  virtual int host() const = 0;
  virtual int hosts() const = 0;

  // Begin to send, or to receive into, `bytes`, which must stay valid and unchanged until wait()
  // returns or the link is destroyed. REQUIRES: 0 <= peer < hosts(), peer != host().
  virtual Request send(int peer, uint32_t tag, std::span<const std::byte> bytes) = 0;
  virtual Request receive(int peer, uint32_t tag, std::span<std::byte> bytes) = 0;

  // Blocks until the message has been sent (its memory may be reused) or has arrived.
  virtual void wait(Request request) = 0;
  // Whether wait() would return at once. Makes progress.
  virtual bool done(Request request) = 0;

  // Ends all calls in progress, which throw, and makes later calls throw. Idempotent. The other
  // hosts' messages with this host fail at once, but with MPI only after the time limit.
  virtual void abort() noexcept = 0;

  // Payload bytes sent and received so far.
  virtual uint64_t bytes_sent() const = 0;
  virtual uint64_t bytes_received() const = 0;
};

}  // namespace dpt
