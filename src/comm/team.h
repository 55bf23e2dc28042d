// Team: all workers of a run on this machine, threads of one process or of several (the ranks).
// They meet, say how far they are, agree on when to stop, and end together when one of them fails.
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

struct Patience;  // comm/futex.h

struct TeamShape {
  int ranks = 1;             // processes
  int workers_per_rank = 1;  // threads of each
  int workers() const { return ranks * workers_per_rank; }
};

// Where a worker stands. Workers are numbered through all ranks: those of rank 1 follow rank 0's.
struct TeamPlace {
  int worker = 0;
  int workers = 1;
  int rank = 0;
  int ranks = 1;
  int workers_per_rank = 1;
};

struct TeamSettings {
  int cores = 0;          // that the team may use; 0: those this process may run on
  double spin_us = 80;    // how long a barrier spins before it sleeps; more workers than cores
                          // never spin
  double timeout_s = 60;  // a rank whose process has been silent for so long is lost
  double notice_s = 600;  // without a step, after which the user is told where the ranks are
  // How long a worker waits for another one whose process runs. Workers on CPUs wait for as long as
  // a step or a save takes; a call to a GPU's driver may never return.
  double stuck_s = std::numeric_limits<double>::infinity();
};

enum class Phase : uint32_t { starting, training, evaluating, saving, finished };

struct Progress {
  int64_t epoch = 0;  // from 1; 0: not begun
  int64_t step = 0;   // of the run, from 1; 0: not begun
  Phase phase = Phase::starting;
  bool operator==(const Progress&) const = default;
};

// What a worker throws that was waiting for a team that somebody else broke up. Not a failure of
// its own: whoever catches it says nothing, unless claim_message() tells it to.
class TeamBroken : public Error {
 public:
  explicit TeamBroken(const std::string& reason) : Error(Fault::rank, reason) {}
};

// A view of a header in shared memory, so a copy is the same team. Threads: every function may be
// called by any thread of any rank, those with a `worker` only as that worker.
class Team {
 public:
  static constexpr size_t kLongestReason = 500;  // bytes; the rest is cut off

  // Size of the header: a multiple of 4096.
  static size_t bytes(const TeamShape& shape);

  // Makes the header, once, in zeroed memory that all ranks share; for one rank any will do.
  // REQUIRES: header.size() >= bytes(shape), at a multiple of 128.
  static Team create(std::span<std::byte> header, const TeamShape& shape,
                     const TeamSettings& settings = {});
  // The same team, in a process that got the memory by its descriptor. Errors: Error{rank}.
  static Team attach(std::span<std::byte> header);

  const TeamShape& shape() const;
  TeamPlace place(int worker) const;

  // Waits until all workers have come. What they wrote before is seen by all afterwards.
  // Throws TeamBroken when the team is broken up meanwhile or was before. A worker that waits for
  // longer than `stuck_s` breaks the team up itself, naming those who have not come.
  void meet(int worker);
  // The same without that limit: somebody writes files meanwhile, for as long as that takes.
  void meet_patiently(int worker);
  // The same for the workers of the worker's own rank.
  void meet_rank(int worker);

  // Says that the worker has done one more piece of work.
  void post(int worker) noexcept;
  // Waits until `other` has said so `count` times since the team was made (counts go round at
  // 2^31). What it wrote before is seen afterwards. Throws as meet() does.
  void wait_for(int other, uint32_t count);
  // Waits until all of these have come here, a meeting of some; each of them calls it with the same
  // ones. Workers may belong to one such set only. Throws as meet() does.
  void meet_some(int worker, std::span<const int> workers);

  // Ends the team: all who wait, and all who come, throw. The first call's reason is everybody's;
  // true for that one. `rank` is the one to blame, `code` the exit code of the run; tells: that
  // rank will claim_message() itself. May be called in a signal handler.
  bool break_up(int rank, std::string_view reason, int code = static_cast<int>(Fault::rank),
                bool tells = false) noexcept;
  bool broken() const noexcept;
  std::string reason() const;  // empty while nothing is broken
  int broken_by() const;       // the rank; -1 while nothing is broken
  int exit_code() const;       // 0 while nothing is broken
  // True for exactly one caller of all ranks: the one that tells the user what ended the run. When
  // the rank to blame tells that itself, only it is asked, or whoever speaks for it once it is
  // gone.
  bool claim_message(int rank = -1) noexcept;

  // A rank's heartbeat (comm/heartbeat.h): a count that changes for as long as its process runs.
  static constexpr uint32_t kEnded = std::numeric_limits<uint32_t>::max();
  double timeout_s() const noexcept;
  double notice_s() const noexcept;
  void beat(int rank) noexcept;
  void end_heartbeat(int rank) noexcept;        // the rank is done: the count is kEnded
  uint32_t heartbeat(int rank) const noexcept;  // 0: it has not begun

  void set_progress(int worker, const Progress& progress) noexcept;
  Progress progress(int rank) const noexcept;  // of the rank's first worker
  void set_pid(int rank, int pid) noexcept;
  // "rank 1 (pid 811)" and "at epoch 2, step 137", for messages.
  std::string name_of(int rank) const;
  std::string where_is(int rank) const;

  // An orderly end, all workers after the same step. A signal handler writes the signal's number
  // into stop_word(). Worker 0 calls publish_stop() once a step (for others it does nothing); from
  // the next meet() on, agreed_stop(worker) is that number, for each worker as soon as that very
  // meeting is behind it and not before. 0: go on. Without a worker: for those who are none.
  std::atomic<int>& stop_word() noexcept;
  void publish_stop(int worker) noexcept;
  int agreed_stop(int worker) const noexcept;
  int agreed_stop() const noexcept;

  // A pause between two steps that worker 0 decides on, by a clock for example. Before it begins a
  // step, worker 0 may call publish_pause(n), n: the steps that are complete after it. From that
  // step's first barrier on, every worker reads that number from agreed_pause(). REQUIRES: all
  // workers pass a barrier in each step, and pause together after step n, before worker 0 publishes
  // another number.
  void publish_pause(int64_t after) noexcept;
  int64_t agreed_pause() const noexcept;  // -1: none so far

 private:
  struct Header;
  struct Seat;
  struct Side;
  explicit Team(std::byte* header);
  Seat& seat(int worker) const;
  Side& side(int rank) const;
  void meet(int worker, const Patience& patience);
  [[noreturn]] void give_up(int worker, bool late, bool whole) const;
  [[noreturn]] void give_up_on(int other, bool late) const;

  Header* header_;
};

}  // namespace dpt
