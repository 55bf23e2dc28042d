// Rendezvous: ranks that an external launcher (torchrun, srun, mpirun) started on one machine find
// each other over a Unix socket, map the same shared memory, and notice if one of them ends.
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

// Must be equal in all ranks. Rank 0 compares before it shares anything.
struct Identity {
  std::string spec;   // text of the resolved spec
  std::string build;  // version, and what else decides the layout of the memory
  size_t bytes = 0;   // of shared memory
};

struct RendezvousSettings {
  double timeout_s = 60;            // for all ranks to come
  std::filesystem::path directory;  // of the socket; empty: as socket_directories() has it
  double notice_s = 5;              // then a rank that still waits says for whom
};

// Never opens a TCP port. The socket is in a directory that only this user can enter, both ends
// check each other's user, and it is removed once all ranks have connected or one has failed.
class Rendezvous {
 public:
  // Connects all ranks. Rank 0 creates identity.bytes of shared memory, calls prepare(memory),
  // waits for the other ranks and sends the memory to them; they return when they have it.
  // prepare() must call Team::create(), and do nothing that takes long or fails: errors after
  // join() reach the other ranks through the team. Throws Error{rank}, naming the ranks, if ranks
  // do not connect in time, differ, or connect twice. In the ranks that learn of this from rank 0
  // it is a TeamBroken, so that only one prints it. Connections without a valid hello are dropped,
  // reported once on stderr, and delay nobody.
  static Rendezvous join(const World& world, const Identity& identity,
                         const std::function<void(SharedMemory&)>& prepare,
                         const RendezvousSettings& settings = {});

  Rendezvous(Rendezvous&&) noexcept;
  Rendezvous& operator=(Rendezvous&&) = delete;
  ~Rendezvous();  // without goodbye(), the other ranks take this one for dead

  const SharedMemory& memory() const;
  const LauncherProcess& launcher_process() const;

  // Starts a thread that breaks up the team if a rank ends without goodbye(). Call it once.
  void watch(Team team);
  void goodbye() noexcept;

 private:
  struct State;
  explicit Rendezvous(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Replaces Rendezvous::join() if this rank has already failed: the other ranks end at once with
// `why`, one line for the user. Waits at most settings.timeout_s. Returns whether rank 0 has failed
// for the same reason and reports it itself; false for rank 0.
bool tell_early_failure(const World& world, std::string_view why,
                        const RendezvousSettings& settings) noexcept;

// The counterpart of launch() for ranks that dptrain did not start. Calls body() through run_rank()
// with signal handling, a heartbeat, and watching of the other ranks and the launcher. Returns this
// rank's exit code. If the team was broken up and no rank has printed why, this rank prints it.
// leave: called at the end, while a stop signal that comes late does not end the process yet.
int run_joined(Rendezvous& rendezvous, Team team, int rank, const std::function<int()>& body,
               const std::function<void()>& leave = {});

}  // namespace dpt
