// The memory that all workers of a machine share, whether they are threads, forked ranks or ranks
// that a launcher started: the team's header, rank 0's decision, the state of GPU communication,
// and the buffers. Runs the ranks that work on it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/generator.h"
#include "checkpoint/resume.h"
#include "comm/rendezvous.h"
#include "comm/shared_memory.h"
#include "comm/team.h"
#include "engine/trace.h"
#include "session/session.h"

namespace dpt {

class RunMemory {
 public:
  // For the ranks that run_ranks() forks or, if the session has one rank, for threads of this
  // process. Throws Error{memory}. The session must outlive the object.
  explicit RunMemory(const Session& session, const TeamSettings& settings = {});
  // For one of the ranks of this machine that a launcher started: waits for the others. spec: the
  // text that must be equal on all of them. Throws as Rendezvous::join() does.
  RunMemory(const Session& session, const TeamSettings& settings, const World& ranks,
            const std::string& spec);

  // For ranks that dptrain starts.
  static size_t bytes(const Session& session);

  Team team() const { return team_; }
  const Buffers& buffers() const { return buffers_; }
  std::byte* gpus() const { return memory().data() + at_.gpus; }  // GpuAccess::shared
  // Of RunStart, zeroed. REQUIRES: a launcher started the ranks.
  std::span<std::byte> decision() const {
    return memory().span().subspan(at_.decision, at_.gpus - at_.decision);
  }

  // Fills the buffers with initial values, or on the first host with the checkpoint's, which it
  // sends to the others later. Every rank that a launcher started calls it; rank 0 alone writes to
  // the shared buffers. Returns PyTorch's global generator after it has drawn the values; with
  // `resume`, which has a generator of its own, other ranks than 0 of a launcher draw nothing.
  Generator fill(const std::optional<Resume>& resume = {}) const;

  // Memory for a trace of each worker. Call it once, before run_ranks(). REQUIRES: no launcher
  // started the ranks.
  std::span<Trace> make_traces();

  // Calls body(rank) and returns the exit code: of this rank, as run_joined() does, if a launcher
  // started it; else of all ranks, as launch() does. leave: see run_joined().
  int run_ranks(const std::function<int(int rank)>& body, const std::function<void()>& leave = {});

 private:
  // Offsets of the parts; bytes: of all.
  struct Offsets {
    Offsets(const Session& session, size_t decision_bytes);
    size_t decision, gpus, buffers, bytes;
  };
  const SharedMemory& memory() const { return ranks_ ? ranks_->memory() : *own_; }

  const Session& session_;
  Offsets at_;
  std::optional<SharedMemory> own_, traces_;
  std::optional<Rendezvous> ranks_;  // that a launcher started
  int rank_ = 0;
  Team team_;
  Buffers buffers_;
};

}  // namespace dpt
