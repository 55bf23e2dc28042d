// ControlChannel: small messages between the leaders of the hosts of a run, and their common end.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/hosts/gathering.h"
#include "comm/team.h"

namespace dpt {

class ControlLoop;
struct LinkActivity;

struct ChannelSettings {
  double beat_s = 1;      // from one sign of life to the next
  double silence_s = 15;  // after which a host is lost
  double look_s = 0.1;    // how often the team is looked at for its end and for stop signals
  double stall_s = 60;    // after which hosts that all wait for data, while none moves, give up
  double patience_s = 1;  // for the reason why data no longer comes, see data_failed()
};

// Connections form a star: every host has one, to host 0, which passes on what concerns all. A
// thread of its own, which blocks all signals, does all reading and writing. It
// - sends a beat each second, with the position of the host's first rank and whether it waits for
//   data;
// - ends the run if a connection breaks without a goodbye, or a host is silent for `silence_s`:
//   "rank 4 on host 2 (hostb) has been silent for 15 s at epoch 3, step 812". Silence is counted in
//   own beats, so time in which this process did not run either does not count;
// - on host 0, ends the run if the leaders of all hosts wait for each other and no data has moved
//   for `stall_s`: "no data has moved between rank 0 on host 0 (hosta) and rank 4 on host 2 (hostb)
//   for 60 s". A host that computes, reads or saves is waited for as long as it responds;
// - if the local team is broken up, sends the reason to all hosts, with the rank and its position;
// - if another host sends such a reason, breaks up the local team with it (Team::kOtherHost, exit
//   code Fault::rank). Whoever ends the team's run prints it once per host (run_joined());
// - on other hosts than host 0, passes a stop signal (Team::stop_word()) on to host 0, whose
//   stop_word() is then set. The hosts stop together when host 0 tells them to between two steps,
//   over the data channel.
// Positions in messages are this host's own where it is further than the last beat of the other:
// hosts are at most a step apart, and a beat may be a second old.
//
// Threads: all_gather() and broadcast() by one thread at a time; the others by any.
// Errors: Error{rank} with the reason if the run has failed, TeamBroken once the channel watches a
// team.
class ControlChannel {
 public:
  explicit ControlChannel(GatheredHosts hosts, const ChannelSettings& settings = {});
  ~ControlChannel();  // without goodbye(), the other hosts take this one for dead

  int host() const;
  const HostMap& map() const;

  // Sends `own` to all hosts and returns what each host sent, in the order of hosts. Blocks until
  // all have called it. A host that waits in it counts as one that waits for data. REQUIRES:
  // own.size() <= kLongestGathered (messages.h)
  std::vector<std::string> all_gather(const std::string& own);

  // Copies the bytes of host 0 to all hosts. Blocks until this host has them; host 0, until they
  // have been sent. As in all_gather(), the host then waits for data. All hosts must pass the same
  // size, and call it in the same order as all_gather(). The other hosts' bytes are undefined if it
  // throws.
  void broadcast(std::span<std::byte> bytes);

  // From now on the end of the run and of the team are one. link: its state is sent to the other
  // hosts, and its `ended` is set when the run ends; null: there is no link.
  // Call watch() once. REQUIRES: the team's memory and `link` outlive goodbye(), or this object.
  void watch(Team team, LinkActivity* link = nullptr);

  // Called if data can no longer be exchanged with another host, `peer`. The cause is usually the
  // end of a process, of which the control channel learns, too: waits at most `patience_s` for it.
  // Without it, ends the run with `why`. Throws TeamBroken with the reason once the channel watches
  // a team, else Error{rank}.
  [[noreturn]] void data_failed(int peer, const std::string& why);

  // This host has ended as it should, or has told the others why not. Waits at most 2 s for the
  // network. Idempotent.
  void goodbye() noexcept;

  // goodbye() of a host that has failed before it watches a team: the other hosts end with `why`,
  // one line for the user.
  void give_up(const std::string& why) noexcept;

 private:
  std::unique_ptr<ControlLoop> loop_;
};

}  // namespace dpt
