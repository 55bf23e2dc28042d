// How the GPUs of a run find each other, and how a rank that does not come is found out. What they
// share lies in the memory that the team's workers share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/interface/device_api.h"
#include "comm/team.h"

namespace dpt {

// Opens the GPU of that number, called by the thread that uses it. Throws Error{device}.
using OpenGpu = std::function<std::unique_ptr<cuda::DeviceApi>(int index)>;

// How a worker comes to its GPU, and to the other GPUs of its run.
struct GpuAccess {
  OpenGpu open;
  // DeviceTeam::bytes(), and what else workers want of room(), zeroed at the run's start.
  std::byte* shared = nullptr;
  // How long a GPU, or a call to its driver, may take to end: hosts whose processes run wait for so
  // long for a step of theirs and of each other.
  double stuck_s = 600;
};

class DeviceTeam {
 public:
  static size_t bytes(int workers);

  // span: GPUs of a replica, each a worker; its peers are the GPUs with the same stages of others.
  DeviceTeam(Team team, int worker, int span, const GpuAccess& access);

  int worker() const { return worker_; }
  int device() const { return worker_ % span_; }  // in its replica
  int replica() const { return worker_ / span_; }
  int worker_of(int device) const { return replica() * span_ + device; }  // of its replica
  Team team() const { return team_; }
  bool first_of_rank() const { return worker_ % team_.shape().workers_per_rank == 0; }
  int agreed_stop() const { return alone() ? team_.agreed_stop() : team_.agreed_stop(worker_); }
  bool alone() const { return team_.shape().workers() == 1; }

  // All workers: the communicator of the peers, where a rank is a replica, or of the replica, where
  // it is a device. Throws Error{device} where two of all workers have the same GPU, TeamBroken
  // where one does not come.
  // most_blocks: as DeviceApi::join.
  std::unique_ptr<cuda::Communicator> join_peers(cuda::DeviceApi& api) {
    return join(api, peers_, 0);
  }
  std::unique_ptr<cuda::Communicator> join_replica(cuda::DeviceApi& api, int most_blocks);

  // Nothing where it is alone.
  void meet() {
    if (!alone()) team_.meet(worker_);
  }
  void meet_rank() { team_.meet_rank(worker_); }
  void meet_peers() { span_ == 1 ? meet() : team_.meet_some(worker_, peers_); }
  // Of workers of a replica, which use each other's memory and events: one that has come says so
  // before the others can know where those are, and, once it uses no other's any more, waits until
  // that holds for all. Not for ever: one may be in a call that does not return.
  void arrive() noexcept;
  void leave() noexcept;
  // Where GPUs of one process leave something for another worker; seen after a meeting.
  void publish(int worker, std::byte* memory) noexcept;
  std::byte* published(int worker) const noexcept;

  // All peers: the numbers of all, in their order.
  std::vector<double> all(double own);
  int64_t largest(int64_t own);  // all workers; 0 or more
  // All workers: how many of them have the GPU of that bus id, whatever its index in each process.
  int sharing(const std::string& bus_id);

  // Says that this worker begins a step, or a batch of an evaluation in stages. All workers.
  void begin_step() noexcept;

  // The calling thread waits for what its GPU does, which may be waiting for others; or for what
  // another worker does. Throws TeamBroken where the team is broken up meanwhile, which it does
  // itself after GpuAccess::stuck_s, naming who has not come; and what check() throws.
  void wait(cuda::Event& event, const std::function<void()>& check = {});
  void wait_until(const std::function<bool()>& done);

  // Memory that all workers share behind what DeviceTeam takes of it, zeroed at the run's start; at
  // a multiple of 128.
  std::byte* room() const;

 private:
  struct Seat;
  Seat& seat(int worker) const;
  std::unique_ptr<cuda::Communicator> join(cuda::DeviceApi& api, const std::vector<int>& workers,
                                           int most_blocks);
  void compare_gpus(const std::string& own) const;
  void look(double since);
  [[noreturn]] void give_up(double now);

  Team team_;
  int worker_, span_;
  std::vector<int> peers_;
  Seat* seats_;
  double stuck_s_;
};

}  // namespace dpt
