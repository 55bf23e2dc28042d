// RunHosts: the hosts (machines) of a run, as one of its ranks uses them. The leaders of the hosts,
// their first ranks, have the connections: a control channel, and a link for the data of steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/hosts/control_channel.h"
#include "comm/hosts/messages.h"
#include "comm/link_activity.h"
#include "comm/links/link.h"
#include "comm/links/module.h"
#include "comm/team.h"
#include "comm/world.h"
#include "session/session_data.h"
#include "session/session_query.h"

namespace dpt {

// Thread: the one that runs the rank, unless a function says otherwise.
class RunHosts {
 public:
  // Silence after which a rank is lost to the others of its host. With the two heartbeats that it
  // takes them to notice, it is that of a host, which other hosts notice.
  static constexpr double kSilentRankS = 13;

  // Connects the ranks of this host, then the hosts, and tells all ranks of this host how the hosts
  // are laid out. Blocks until all have come. Throws as join_hosts() and Rendezvous::join() do; a
  // leader that fails tells the other ranks of its host. REQUIRES: world.has_several_hosts().
  RunHosts(const World& world, const HostIdentity& identity, double timeout_s);
  // The ranks of this host, as they connect first. A rank that fails before it has made a RunHosts
  // tells these (tell_early_failure()).
  static World before_run(const World& world);
  ~RunHosts();  // without goodbye(), the other hosts take this one for dead
  RunHosts(const RunHosts&) = delete;
  RunHosts& operator=(const RunHosts&) = delete;

  const SessionQuery::Hosts& layout() const { return layout_; }
  const World& local() const { return local_; }  // of the ranks of this host
  int host() const { return layout_.host; }
  std::string name() const;  // of this host, "host 1 (hostb)"; empty: this rank is no leader
  bool leads() const { return local_.rank == 0; }
  // The network interface over which this host is connected to the others, "eth0"; empty: unknown.
  const std::string& interface() const { return interface_; }

  // Every rank of the run, before connect(): loads what carries data between hosts, "gloo" or
  // "mpi". Throws Error{device}. Thread: the one that called main().
  void load(std::string_view backend);

  // The functions below are for leaders, which all make the same calls in the same order.

  // Throws Error{data} on host 0, and TeamBroken on the others, if the hosts have different samples
  // for training or evaluation.
  void compare(const SessionData& data);
  // Connects the link that carries the data of steps. timeout_s: for a message to make progress;
  // empty: that of the constructor. If the link fails, now or later, it throws as
  // ControlChannel::data_failed() does. If the run ends meanwhile, it throws; if MPI's call does
  // not return, the process exits after 5 s. REQUIRES: watch() was called.
  Link& connect(std::optional<double> timeout_s = {});
  // Copies the bytes of host 0 to all hosts, over the control channel.
  void broadcast(std::span<std::byte> bytes);
  // Host 0's text, on all hosts.
  std::string from_first(const std::string& text);
  // Host 0 calls it once the results of the run are saved; on the other hosts, it blocks until
  // then. Throws TeamBroken if host 0 ends without having saved. REQUIRES: watch() was called.
  void confirm_saved();
  // From now on this host ends with the others (ControlChannel::watch).
  void watch(Team team);
  // end() of a host that has failed before watch(): the other hosts end with `why`, one line for
  // the user.
  void give_up(const std::string& why) noexcept;
  // This rank has ended; the team's memory is not used afterwards. ordered: as it should, and so do
  // the other hosts. Idempotent.
  void end(bool ordered) noexcept;

 private:
  void find_own_ranks(const World& world, const HostIdentity& identity);
  void join(const World& world, const HostIdentity& identity);
  void lay_out();
  void compare(const Dataset& set, std::string_view name);

  World local_;
  std::string interface_;
  LinkModule* module_ = nullptr;
  double timeout_s_;
  SessionQuery::Hosts layout_;
  std::optional<Team> team_;  // that watch() got
  LinkActivity activity_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<ControlChannel> channel_;  // null: not a leader
};

}  // namespace dpt
