// How the GPUs of a run find each other, and how a missing rank is detected. Their shared data lies
// in the memory that the team's workers share. With several hosts (machines) these are the workers
// of one host, and the leader of each, its first worker, exchanges with those of others.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/interface/device_api.h"
#include "comm/links/link.h"
#include "comm/team.h"

namespace dpt {

// Opens the GPU with that index. Called by the thread that will use it. Throws Error{device}.
using OpenGpu = std::function<std::unique_ptr<cuda::DeviceApi>(int index)>;

// A worker's access to its GPU, and to the other GPUs of the run.
struct GpuAccess {
  OpenGpu open;
  // Memory that all workers share, zeroed at the start: GpuTeam::bytes(), extra_memory().
  std::byte* shared = nullptr;
  // Seconds that a step, or a call to the driver, may take before the GPU is given up as stuck.
  // Hosts whose processes are alive wait this long for their GPUs and for each other.
  double stuck_s = 600;
  // With several hosts, on the leader of each; null: not a leader, or one host. broadcast: copies
  // the bytes of host 0 to all hosts over a channel that authenticates them.
  Link* link = nullptr;
  std::function<void(std::span<std::byte>)> broadcast{};
};

// The workers of all hosts; those of each are numbered consecutively.
struct GpuWorkers {
  int first = 0;  // number of this host's first worker
  int total = 0;  // 0: one host
};

class GpuTeam {
 public:
  static size_t bytes(int workers);

  // worker: its number in the team. devices_per_replica: GPUs of a replica, each with one worker.
  // The peers of a worker are the workers with the same stages in the other replicas.
  // REQUIRES: with several hosts, each replica has one GPU.
  GpuTeam(Team team, int worker, int devices_per_replica, const GpuAccess& access,
          const GpuWorkers& all = {});

  int worker() const { return worker_; }
  int device() const { return worker_ % devices_per_replica_; }    // index in the replica
  int replica() const { return number() / devices_per_replica_; }  // over all hosts
  int worker_of(int device) const {
    return worker_ - this->device() + device;
  }                                                // in the same replica
  int number() const { return first_ + worker_; }  // over all hosts
  bool several_hosts() const { return total_ > team_.shape().workers(); }
  Team team() const { return team_; }
  bool first_of_rank() const { return worker_ % team_.shape().workers_per_rank == 0; }
  int agreed_stop() const { return alone() ? team_.agreed_stop() : team_.agreed_stop(worker_); }
  bool alone() const { return total_ == 1; }

  // Called on all workers: join the communicator of the peers of all hosts (each rank is a
  // replica), or of the replica (each rank is a device). most_blocks: see DeviceApi::join. Throws
  // Error{device} if two workers have the same GPU, and TeamBroken if a worker does not arrive.
  std::unique_ptr<cuda::Communicator> join_peers(cuda::DeviceApi& api);
  std::unique_ptr<cuda::Communicator> join_replica(cuda::DeviceApi& api, int most_blocks);

  // A barrier of all workers of this host; nothing if the run has one worker.
  void barrier() {
    if (!alone()) team_.barrier(worker_);
  }
  void rank_barrier() { team_.rank_barrier(worker_); }
  void peer_barrier() {
    devices_per_replica_ == 1 ? barrier() : team_.barrier_among(worker_, peers_);
  }
  // For workers of a replica that use each other's memory and events. arrive(): from now on others
  // may use this worker's. leave(): this worker uses none of the others' any more; waits until all
  // have left. That wait is limited, since a worker may be in a call that never returns.
  void arrive() noexcept;
  void leave() noexcept;
  // Publishes an address for another worker of the same process, which may read it after a barrier.
  void publish(int worker, std::byte* memory) noexcept;
  std::byte* published(int worker) const noexcept;

  // Called on all peers: their values, in the order of the peers.
  std::vector<double> all(double own);
  int64_t largest(int64_t own);  // the maximum over all workers of all hosts; 0 or more
  // Called on all workers: how many of this host use the GPU with this bus id, whatever its index
  // in their processes.
  int sharing(const std::string& bus_id);

  // Called by every worker when it begins a step, or a batch of an evaluation in stages. The counts
  // show which worker is behind.
  void begin_step() noexcept;

  // Waits for the worker's GPU, which may be waiting for others, or for another worker. check() is
  // called while waiting; its exceptions are passed on. Throws TeamBroken if the team is broken up
  // meanwhile. After GpuAccess::stuck_s the worker breaks it up itself and names the workers that
  // are missing.
  void wait(cuda::Event& event, const std::function<void()>& check = {});
  void wait_until(const std::function<bool()>& done);

  // Shared memory behind GpuTeam's own, zeroed at the start of the run. Aligned to 128 bytes.
  std::byte* extra_memory() const;

 private:
  struct WorkerSlot;
  WorkerSlot& slot(int worker) const;
  void send_id();
  std::unique_ptr<cuda::Communicator> join(cuda::DeviceApi& api, int first, int rank, int ranks,
                                           int most_blocks);
  int64_t largest_of_hosts(int64_t of_host);
  void compare_gpus(const std::string& own) const;
  void look(double since);
  [[noreturn]] void give_up(double now);

  Team team_;
  int worker_, devices_per_replica_;
  int first_, total_;
  std::vector<int> peers_;  // of this host
  WorkerSlot* worker_slots_;
  double stuck_s_;
  Link* link_;
  std::function<void(std::span<std::byte>)> broadcast_;
};

}  // namespace dpt
