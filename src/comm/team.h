// Team: all workers of a run on this machine, threads of one or several processes (the ranks). It
// gives them barriers, progress, an agreed stop, and a common end if one of them fails.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace dpt {

struct WaitPolicy;  // comm/futex.h

struct TeamShape {
  int ranks = 1;             // processes
  int workers_per_rank = 1;  // threads per process
  int workers() const { return ranks * workers_per_rank; }
};

// A worker's position. Workers are numbered over all ranks: those of rank 1 follow those of rank 0.
struct WorkerInfo {
  int worker = 0;
  int workers = 1;
  int rank = 0;
  int ranks = 1;
  int workers_per_rank = 1;
};

struct TeamSettings {
  int cores = 0;  // cores for the team; 0: all that this process may run on
  // How long a barrier spins before it sleeps; 0 if there are more workers than cores
  double spin_us = 80;
  double timeout_s = 60;  // silence after which a rank is lost (comm/heartbeat.h)
  double notice_s = 600;  // time without a new step after which rank 0 prints where all ranks are
  // How long a worker waits for another one whose process runs. CPU workers wait for as long as a
  // step or a save takes. With GPUs there is a limit, because a call to the driver may never
  // return.
  double stuck_s = std::numeric_limits<double>::infinity();
  // A run on several hosts, for messages: the number, among all ranks, of this team's rank 0, and
  // the host's name, "host 1 (hostb)", of which kLongestHost bytes are kept. Empty: one host.
  int first_rank = 0;
  std::string host;
};

enum class Phase : uint32_t { starting, training, evaluating, saving, finished, connecting };

struct Progress {
  int64_t epoch = 0;  // from 1; 0: not begun
  int64_t step = 0;   // of the run, from 1; 0: not begun
  Phase phase = Phase::starting;
  bool operator==(const Progress&) const = default;
};

// "at epoch 2, step 137 while saving", for messages.
std::string position_text(const Progress& progress);

// Thrown by a worker that uses a team which another worker broke up. It is not a failure of its
// own: who catches it prints nothing, unless claim_message() returns true.
class TeamBroken : public Error {
 public:
  explicit TeamBroken(const std::string& reason) : Error(Fault::rank, reason) {}
};

// A view of a header in shared memory; copies refer to the same team. Thread-safe: any thread of
// any rank may call any function. Functions with a `worker` must be called by that worker.
class Team {
 public:
  static constexpr size_t kLongestReason = 500;  // bytes; the rest is cut off
  static constexpr size_t kLongestHost = 95;     // bytes of a host's name
  static constexpr int kOtherHost = -2;          // as the rank to blame: one of another machine

  // Size of the header in bytes: a multiple of 4096.
  static size_t bytes(const TeamShape& shape);

  // Creates the header in zeroed memory that all ranks share; any memory will do for one rank. Call
  // it once. REQUIRES: header.size() >= bytes(shape); alignment 128.
  static Team create(std::span<std::byte> header, const TeamShape& shape,
                     const TeamSettings& settings = {});
  // The same team in a process that received the memory. Throws Error{rank} if it has no header.
  static Team attach(std::span<std::byte> header);

  const TeamShape& shape() const;
  bool several_hosts() const noexcept;
  WorkerInfo info(int worker) const;

  // A barrier of all workers: what they wrote before is visible to all afterwards. Throws
  // TeamBroken if the team is broken up. A worker that waits for longer than `stuck_s` breaks up
  // the team and names the workers that have not arrived.
  void barrier(int worker);
  // The same without the time limit, for while a worker writes files.
  void barrier_without_limit(int worker);
  // A barrier of the workers of the worker's own rank.
  void rank_barrier(int worker);

  // Counts one more finished piece of work of this worker.
  void post(int worker) noexcept;
  // Waits until `other` has posted `count` times since the team was created (counts wrap around at
  // 2^31). What it wrote before is then visible. Throws as barrier() does.
  void wait_for(int other, uint32_t count);
  // A barrier of some workers; each of them must pass the same list. A worker may belong to one
  // such list only. Throws as barrier() does.
  void barrier_among(int worker, std::span<const int> workers);

  // Ends the team: all waiting workers, and all that call barrier() later, throw TeamBroken. The
  // first call decides the reason, and returns true. rank: who is to blame. code: the exit code of
  // the run. tells: `rank` will call claim_message() itself. May be called in a signal handler.
  bool break_up(int rank, std::string_view reason, int code = static_cast<int>(Fault::rank),
                bool tells = false) noexcept;
  bool broken() const noexcept;
  std::string reason() const;      // empty: not broken
  int broken_by() const noexcept;  // the rank to blame; -1: not broken
  int exit_code() const noexcept;  // 0: not broken
  // True for exactly one caller in all ranks, who must tell the user why the run ended. If the rank
  // to blame promised to (tells), only a call with that `rank` gets true, which the launcher makes
  // for it if the rank is gone.
  bool claim_message(int rank = -1) noexcept;

  // A rank's heartbeat (comm/heartbeat.h): a counter that changes as long as its process runs.
  static constexpr uint32_t kEnded = std::numeric_limits<uint32_t>::max();
  double timeout_s() const noexcept;
  double notice_s() const noexcept;
  void beat(int rank) noexcept;
  void end_heartbeat(int rank) noexcept;        // the rank is done: its count becomes kEnded
  uint32_t heartbeat(int rank) const noexcept;  // 0: not begun

  void set_progress(int worker, const Progress& progress) noexcept;
  Progress progress(int rank) const noexcept;  // of the rank's first worker
  void set_pid(int rank, int pid) noexcept;
  // "rank 1 (pid 811)" and "at epoch 2, step 137", for messages. Of several hosts, ranks have their
  // number among all ranks: "rank 3 (pid 811) on host 1 (hostb)". note: stands behind the pid.
  std::string name_of(int rank, std::string_view note = {}) const;
  std::string where_is(int rank) const;
  // What the message of a rank's own failure begins with: "rank 3: "; empty: the run has one rank.
  std::string prefix_of(int rank) const;
  std::string host() const;  // TeamSettings::host

  // An orderly stop of all workers after the same step. A signal handler writes the signal's number
  // into stop_word(). Worker 0 calls publish_stop() once per step; for other workers it does
  // nothing. After the next barrier(), agreed_stop(worker) returns that number in every worker;
  // before, it returns 0, which means: continue. agreed_stop() without a worker is for threads that
  // are not workers.
  std::atomic<int>& stop_word() noexcept;
  void publish_stop(int worker) noexcept;
  int agreed_stop(int worker) const noexcept;
  int agreed_stop() const noexcept;
  // By worker 0: another host's team has agreed to stop after this step, so this one does, too.
  void stop_like_other_host(int signal) noexcept;

  // A pause between two steps, which worker 0 decides on, for example by a clock. Before it begins
  // a step, worker 0 may call publish_pause(n), where n is the number of complete steps after it.
  // From that step's first barrier on, agreed_pause() is n in every worker. REQUIRES: all workers
  // pass a barrier in each step, and pause together after step n before worker 0 publishes another
  // number.
  void publish_pause(int64_t after) noexcept;
  int64_t agreed_pause() const noexcept;  // -1: none so far

 private:
  struct Header;
  struct WorkerSlot;
  struct RankSlot;
  explicit Team(std::byte* header);
  WorkerSlot& worker_slot(int worker) const;
  RankSlot& rank_slot(int rank) const;
  void barrier(int worker, const WaitPolicy& policy);
  [[noreturn]] void give_up(int worker, bool late, bool whole) const;
  [[noreturn]] void give_up_on(int other, bool late) const;

  Header* header_;
};

}  // namespace dpt
