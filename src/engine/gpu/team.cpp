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

namespace dpt {

struct alignas(kDestructiveInterference) DeviceTeam::Seat {
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

size_t DeviceTeam::bytes(int workers) { return static_cast<size_t>(workers) * sizeof(Seat); }

DeviceTeam::DeviceTeam(Team team, int worker, int span, const GpuAccess& access)
    : team_(team),
      worker_(worker),
      span_(span),
      seats_(reinterpret_cast<Seat*>(access.shared)),
      stuck_s_(access.stuck_s) {
  for (int w = device(); w < team_.shape().workers(); w += span_) peers_.push_back(w);
}

DeviceTeam::Seat& DeviceTeam::seat(int worker) const { return seats_[worker]; }

std::byte* DeviceTeam::room() const {
  return reinterpret_cast<std::byte*>(seats_ + team_.shape().workers());
}

std::unique_ptr<cuda::Communicator> DeviceTeam::join_replica(cuda::DeviceApi& api,
                                                             int most_blocks) {
  std::vector<int> workers;
  for (int d = 0; d < span_; ++d) workers.push_back(worker_of(d));
  return join(api, workers, most_blocks);
}

// `workers`: in the order of their ranks. join() returns when all have joined, so ids can be
// reused.
std::unique_ptr<cuda::Communicator> DeviceTeam::join(cuda::DeviceApi& api,
                                                     const std::vector<int>& workers,
                                                     int most_blocks) {
  const std::string& own = api.properties().bus_id;
  own.copy(seat(worker_).bus_id, sizeof Seat::bus_id - 1);
  if (worker_ == workers[0]) seat(worker_).id = api.new_communicator_id();
  meet();
  compare_gpus(own);
  begin_step();
  const auto rank = std::ranges::find(workers, worker_) - workers.begin();
  return api.join(
      seat(workers[0]).id, static_cast<int>(rank), static_cast<int>(workers.size()),
      [this](double seconds) { look(now_s() - seconds); }, most_blocks);
}

void DeviceTeam::compare_gpus(const std::string& own) const {
  const auto rank_of = [&](int worker) { return worker / team_.shape().workers_per_rank; };
  const int rank = rank_of(worker_);
  for (int other = 0; other < worker_; ++other)
    if (own == seat(other).bus_id && rank_of(other) == rank)
      fail(Fault::device,
           "two stages of rank {} use the GPU at {}, but NCCL needs a GPU for each stage; start "
           "fewer ranks, or set `backend: gloo`",
           rank, own);
    else if (own == seat(other).bus_id)
      fail(Fault::device,
           "ranks {} and {} both use the GPU at {}, but NCCL needs a GPU for each rank; start at "
           "most one rank per GPU, or set `backend: gloo`",
           rank_of(other), rank, own);
}

void DeviceTeam::arrive() noexcept { seat(worker_).presence = Seat::here; }

void DeviceTeam::leave() noexcept {
  constexpr double kPatience = 30;
  seat(worker_).presence = Seat::gone;
  const double since = now_s();
  const auto others = [this] {
    for (int d = 0; d < span_; ++d)
      if (seat(worker_of(d)).presence == Seat::here) return true;
    return false;
  };
  while (others() && now_s() - since < kPatience)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void DeviceTeam::publish(int worker, std::byte* memory) noexcept { seat(worker).memory = memory; }
std::byte* DeviceTeam::published(int worker) const noexcept { return seat(worker).memory; }

int64_t DeviceTeam::largest(int64_t own) {
  if (alone()) return own;
  seat(worker_).number = static_cast<double>(own);
  meet();
  double out = 0;
  for (int w = 0; w < team_.shape().workers(); ++w) out = std::max(out, seat(w).number);
  meet();
  return static_cast<int64_t>(out);
}

int DeviceTeam::sharing(const std::string& bus_id) {
  bus_id.copy(seat(worker_).bus_id, sizeof Seat::bus_id - 1);
  meet();
  int out = 0;
  for (int w = 0; w < team_.shape().workers(); ++w) out += seat(w).bus_id == bus_id ? 1 : 0;
  return out;
}

std::vector<double> DeviceTeam::all(double own) {
  seat(worker_).number = own;
  meet_peers();
  std::vector<double> out;
  for (const int w : peers_) out.push_back(seat(w).number);
  meet_peers();
  return out;
}

void DeviceTeam::begin_step() noexcept {
  seat(worker_).steps.fetch_add(1, std::memory_order_release);
  seat(worker_).seen.store(now_s(), std::memory_order_relaxed);
}

void DeviceTeam::wait(cuda::Event& event, const std::function<void()>& check) {
  if (alone()) return event.wait();
  wait_until([&] {
    if (check) check();
    return event.passed();
  });
}

void DeviceTeam::wait_until(const std::function<bool()>& done) {
  const double since = now_s();
  while (!done()) {
    look(since);
    // A step of a small model takes less time than the shortest sleep.
    if (now_s() - since > 1e-3) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void DeviceTeam::look(double since) {
  if (team_.broken()) throw TeamBroken(team_.reason());
  const double now = now_s();
  seat(worker_).seen.store(now, std::memory_order_relaxed);
  if (now - since > stuck_s_) give_up(now);
}

// Blames the workers that have begun fewer steps, or that are in a call that does not return.
void DeviceTeam::give_up(double now) {
  const uint64_t mine = seat(worker_).steps.load(std::memory_order_acquire);
  const int per_rank = team_.shape().workers_per_rank;
  std::string missing;
  int blamed = worker_ / per_rank;
  for (int w = team_.shape().workers() - 1; w >= 0; --w) {
    if (seat(w).steps.load(std::memory_order_acquire) >= mine &&
        now - seat(w).seen.load(std::memory_order_relaxed) < stuck_s_ / 2)
      continue;
    blamed = w / per_rank;
    missing = fmt::format("GPU {} of {} {}{}{}", w % per_rank, team_.name_of(blamed),
                          team_.where_is(blamed), missing.empty() ? "" : ", ", missing);
  }
  team_.break_up(
      blamed, missing.empty()
                  ? fmt::format("all GPUs started the work {}, but it did not end within {} s on "
                                "GPU {}; set NCCL_DEBUG=INFO for details",
                                team_.where_is(blamed), stuck_s_, worker_)
                  : fmt::format("{} did not start {} within {} s", missing,
                                span_ > 1 ? "its part of a step" : "the sum over GPUs", stuck_s_));
  throw TeamBroken(team_.reason());
}

}  // namespace dpt
