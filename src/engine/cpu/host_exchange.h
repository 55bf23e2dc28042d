// What the leader of a host (machine), its first worker, exchanges with those of other hosts: the
// steps of a plan that name `leaders`, and what an evaluation or a checkpoint needs. All leaders
// make the same calls in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/links/link.h"
#include "comm/team.h"
#include "engine/host_results.h"
#include "graph/program/plan.h"
#include "session/buffers.h"
#include "session/host_layout.h"
#include "session/session.h"

namespace dpt {

// Thread: the leader's. The workers of a host write what is sent, and read what has arrived, behind
// barriers. Throws Error{rank} like Link. REQUIRES: all references outlive it.
class HostExchange {
 public:
  HostExchange(const Session& session, const Buffers& buffers, Team team, Link& link);

  // Executes a step of the plan. An exchange begins and goes on until its `wait`. step: the number
  // of the training step.
  void run(const PlanStep& step, uint64_t number);

  // The functions below return when everything has arrived.
  // What hosts with GPUs exchange, too.
  HostResults& results() { return shared_; }
  // The weights, from the hosts that own them.
  void gather_weights();
  // Optimizer states, from the hosts that own them to the first one.
  void gather_states();
  // Everything that a run starts from, from the first host: weights, statistics, and to each host
  // the states of the elements that it owns.
  void send_start();

 private:
  // What all hosts send to all others: one after another, host h from begin[h] on.
  struct Frames {
    std::vector<std::byte> bytes;
    std::vector<size_t> begin;  // [hosts + 1]
    std::span<std::byte> of(int host) {
      const auto h = static_cast<size_t>(host);
      return std::span(bytes).subspan(begin[h], begin[h + 1] - begin[h]);
    }
  };
  using Requests = std::vector<Link::Request>;

  int host() const { return session_.devices.topology.host; }
  int hosts() const { return session_.devices.topology.hosts(); }
  int peer(int k) const { return (host() + k) % hosts(); }  // to spread messages over hosts
  void send(Requests& to, int peer, uint32_t tag, std::span<const std::byte> bytes);
  void receive(Requests& to, int peer, uint32_t tag, std::span<std::byte> bytes);
  void wait(Requests& requests);
  void wait_for_all();
  void begin(Frames& frames, uint32_t tag);

  void begin_results(uint64_t step);
  void end_results(uint64_t step);
  void begin_gradients(size_t bucket);
  void begin_weights(size_t bucket);
  void begin_squares();
  void end_squares();
  template <class F>
  void each_own_chunk(int host, F f) const;
  void exchange_states(bool to_first);

  const Session& session_;
  const Buffers buffers_;
  Team team_;
  Link& link_;
  const HostLayout& layout_;
  HostResults shared_;
  Frames results_, squares_;
  Requests frames_, sends_, weights_;  // on their way
  std::vector<Requests> gradients_;    // [slots] of the bucket in each slot
};

}  // namespace dpt
