#include "engine/gpu/team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/units.h"
#include "engine/clock.h"
#include "engine/host_messages.h"

namespace dpt {

struct alignas(kDestructiveInterference) GpuTeam::WorkerSlot {
  enum Presence : int { away, here, gone };
  std::atomic<uint64_t> steps;  // begun by this worker
  // When the worker was last alive; now_s() has one origin for all processes.
  std::atomic<double> seen;
  char bus_id[32];                 // 0-terminated
  cuda::CommunicatorId id;         // of the communicator of which it is the first rank
  std::atomic<Presence> presence;  // whether workers of its replica may use its memory
  std::byte* memory;
  double number;
};

size_t GpuTeam::bytes(int workers) { return static_cast<size_t>(workers) * sizeof(WorkerSlot); }

GpuTeam::GpuTeam(Team team, int worker, int devices_per_replica, const GpuAccess& access,
                 const GpuWorkers& all)
    : team_(team),
      worker_(worker),
      devices_per_replica_(devices_per_replica),
      first_(all.first),
      total_(all.total > 0 ? all.total : team.shape().workers()),
      worker_slots_(reinterpret_cast<WorkerSlot*>(access.shared)),
      stuck_s_(access.stuck_s),
      link_(access.link),
      broadcast_(access.broadcast) {
  require(!several_hosts() || devices_per_replica == 1, "over hosts, a replica has one GPU");
  for (int w = device(); w < team_.shape().workers(); w += devices_per_replica_)
    peers_.push_back(w);
}

GpuTeam::WorkerSlot& GpuTeam::slot(int worker) const { return worker_slots_[worker]; }

std::byte* GpuTeam::extra_memory() const {
  return reinterpret_cast<std::byte*>(worker_slots_ + team_.shape().workers());
}

std::unique_ptr<cuda::Communicator> GpuTeam::join_peers(cuda::DeviceApi& api) {
  return join(api, device(), replica(), total_ / devices_per_replica_, 0);
}

std::unique_ptr<cuda::Communicator> GpuTeam::join_replica(cuda::DeviceApi& api, int most_blocks) {
  return join(api, worker_of(0), device(), devices_per_replica_, most_blocks);
}

// first: the worker whose slot has the id; the communicator's rank 0, or with several hosts each
// host's leader. join() returns when all have joined, so ids can be reused.
std::unique_ptr<cuda::Communicator> GpuTeam::join(cuda::DeviceApi& api, int first, int rank,
                                                  int ranks, int most_blocks) {
  const std::string& own = api.properties().bus_id;
  own.copy(slot(worker_).bus_id, sizeof WorkerSlot::bus_id - 1);
  if (rank == 0) slot(worker_).id = api.new_communicator_id();
  barrier();
  compare_gpus(own);
  if (several_hosts()) send_id();
  begin_step();
  return api.join(
      slot(first).id, rank, ranks, [this](double seconds) { look(now_s() - seconds); },
      most_blocks);
}

// From the first worker of the first host to the slots of all leaders.
void GpuTeam::send_id() {
  if (broadcast_) broadcast_(std::as_writable_bytes(std::span(slot(worker_).id)));
  barrier();
}

void GpuTeam::compare_gpus(const std::string& own) const {
  const auto rank_of = [&](int worker) { return worker / team_.shape().workers_per_rank; };
  const int rank = rank_of(worker_);
  for (int other = 0; other < worker_; ++other)
    if (own == slot(other).bus_id && rank_of(other) == rank)
      fail(Fault::device,
           "two stages of rank {} use the GPU at {}, but NCCL needs a GPU for each stage; start "
           "fewer ranks, or set `backend: gloo`",
           rank, own);
    else if (own == slot(other).bus_id)
      fail(Fault::device,
           "ranks {} and {} both use the GPU at {}, but NCCL needs a GPU for each rank; start at "
           "most one rank per GPU{}",
           first_ + rank_of(other), first_ + rank, own,
           several_hosts() ? "" : ", or set `backend: gloo`");
}

void GpuTeam::arrive() noexcept { slot(worker_).presence = WorkerSlot::here; }

void GpuTeam::leave() noexcept {
  constexpr double kPatience = 30;
  slot(worker_).presence = WorkerSlot::gone;
  const double since = now_s();
  const auto others = [this] {
    for (int d = 0; d < devices_per_replica_; ++d)
      if (slot(worker_of(d)).presence == WorkerSlot::here) return true;
    return false;
  };
  while (others() && now_s() - since < kPatience)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void GpuTeam::publish(int worker, std::byte* memory) noexcept { slot(worker).memory = memory; }
std::byte* GpuTeam::published(int worker) const noexcept { return slot(worker).memory; }

int64_t GpuTeam::largest(int64_t own) {
  if (alone()) return own;
  slot(worker_).number = static_cast<double>(own);
  barrier();
  double out = 0;
  for (int w = 0; w < team_.shape().workers(); ++w) out = std::max(out, slot(w).number);
  barrier();
  return several_hosts() ? largest_of_hosts(static_cast<int64_t>(out)) : static_cast<int64_t>(out);
}

int64_t GpuTeam::largest_of_hosts(int64_t of_host) {
  if (link_) {
    std::vector<int64_t> all(static_cast<size_t>(link_->hosts()), of_host);
    std::vector<std::span<std::byte>> frames;
    for (int64_t& n : all) frames.push_back(std::as_writable_bytes(std::span(&n, 1)));
    all_gather(*link_, HostTag::largest, frames);
    slot(worker_).number = static_cast<double>(std::ranges::max(all));
  }
  barrier();
  const double out = slot(0).number;
  barrier();
  return static_cast<int64_t>(out);
}

int GpuTeam::sharing(const std::string& bus_id) {
  bus_id.copy(slot(worker_).bus_id, sizeof WorkerSlot::bus_id - 1);
  barrier();
  int out = 0;
  for (int w = 0; w < team_.shape().workers(); ++w) out += slot(w).bus_id == bus_id ? 1 : 0;
  return out;
}

std::vector<double> GpuTeam::all(double own) {
  slot(worker_).number = own;
  peer_barrier();
  std::vector<double> out;
  for (const int w : peers_) out.push_back(slot(w).number);
  peer_barrier();
  return out;
}

void GpuTeam::begin_step() noexcept {
  slot(worker_).steps.fetch_add(1, std::memory_order_release);
  slot(worker_).seen.store(now_s(), std::memory_order_relaxed);
}

void GpuTeam::wait(cuda::Event& event, const std::function<void()>& check) {
  if (alone()) return event.wait();
  wait_until([&] {
    if (check) check();
    return event.passed();
  });
}

void GpuTeam::wait_until(const std::function<bool()>& done) {
  const double since = now_s();
  while (!done()) {
    look(since);
    // A step of a small model takes less time than the shortest sleep.
    if (now_s() - since > 1e-3) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void GpuTeam::look(double since) {
  if (team_.broken()) throw TeamBroken(team_.reason());
  const double now = now_s();
  slot(worker_).seen.store(now, std::memory_order_relaxed);
  if (now - since > stuck_s_) give_up(now);
}

// Blames the workers that have begun fewer steps, or that are in a call that does not return.
void GpuTeam::give_up(double now) {
  const uint64_t mine = slot(worker_).steps.load(std::memory_order_acquire);
  const int per_rank = team_.shape().workers_per_rank;
  std::string missing;
  int blamed = worker_ / per_rank;
  for (int w = team_.shape().workers() - 1; w >= 0; --w) {
    if (slot(w).steps.load(std::memory_order_acquire) >= mine &&
        now - slot(w).seen.load(std::memory_order_relaxed) < stuck_s_ / 2)
      continue;
    blamed = w / per_rank;
    missing = fmt::format("GPU {} of {} {}{}{}", w % per_rank, team_.name_of(blamed),
                          team_.where_is(blamed), missing.empty() ? "" : ", ", missing);
  }
  team_.break_up(
      blamed,
      missing.empty()
          ? fmt::format("all GPUs{} started the work {}, but it did not end within {} s on "
                        "GPU {}; set NCCL_DEBUG=INFO for details",
                        several_hosts() ? " of this host" : "", team_.where_is(blamed), stuck_s_,
                        worker_)
          : fmt::format("{} did not start {} within {} s", missing,
                        devices_per_replica_ > 1 ? "its part of a step" : "the sum over GPUs",
                        stuck_s_));
  throw TeamBroken(team_.reason());
}

}  // namespace dpt
