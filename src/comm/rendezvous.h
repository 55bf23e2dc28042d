// Rendezvous: ranks of one machine that somebody else started (torchrun, srun, mpirun) find each
// other over a Unix socket, get the same shared memory, and notice when one of them is gone.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "comm/heartbeat.h"
#include "comm/shared_memory.h"
#include "comm/team.h"
#include "comm/world.h"

namespace dpt {

// What must be the same in all ranks; rank 0 compares before anything is shared.
struct Identity {
  std::string spec;   // the resolved spec's text
  std::string build;  // version and whatever else decides the layout of the memory
  size_t bytes = 0;   // of the shared memory
};

struct RendezvousSettings {
  double timeout_s = 60;            // for all ranks to come
  std::filesystem::path directory;  // of the socket; empty: as socket_directories() has it
};

// No TCP port at any time. The socket lies in a directory that only this user can enter, both ends
// check each other's user, and it is removed as soon as all have come or one has failed.
class Rendezvous {
 public:
  // Rank 0 creates identity.bytes of shared memory, calls prepare(memory) on it (Team::create, and
  // nothing that takes long or fails: the others learn of that through the team), waits for the
  // others and hands it to them; they return when they have it. Errors: Error{rank} when ranks do
  // not come in time, differ, or come twice, naming them; in the ranks that only hear of that from
  // rank 0 it is a TeamBroken, so that one of them speaks. Connections that send no valid hello are
  // dropped and noted once on stderr; the others are not delayed.
  static Rendezvous join(const World& world, const Identity& identity,
                         const std::function<void(SharedMemory&)>& prepare,
                         const RendezvousSettings& settings = {});

  Rendezvous(Rendezvous&&) noexcept;
  Rendezvous& operator=(Rendezvous&&) = delete;
  ~Rendezvous();  // without goodbye(): the others take this rank for dead

  const SharedMemory& memory() const;
  const Starter& starter() const;

  // From now on a thread breaks the team up when a rank ends without goodbye(). Call it once.
  void watch(Team team);
  void goodbye() noexcept;

 private:
  struct State;
  explicit Rendezvous(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// In the place of Rendezvous::join(), when this rank has failed before: the others end at once with
// `why`, one line for the user. Waits for them no longer than settings.timeout_s. Returns whether
// rank 0 has failed for the same reason, which it then reports itself; false for rank 0.
bool tell_early_failure(const World& world, std::string_view why,
                        const RendezvousSettings& settings) noexcept;

// What launch() is for ranks that dptrain starts: calls body() through run_rank() with signals
// handled, a heartbeat, and the others and the process that started this rank watched, and returns
// this rank's exit code. If the team was broken up and nobody has told the user why, this rank
// does.
int run_joined(Rendezvous& rendezvous, Team team, int rank, const std::function<int()>& body);

}  // namespace dpt
