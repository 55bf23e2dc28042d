// How long one barrier of a team takes: threads, then processes, each worker on a core of its own.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/shared_memory.h"
#include "comm/team.h"

namespace dpt {
namespace {

constexpr int kRounds = 200'000, kRepeats = 5;

void pin(int worker) {
  cpu_set_t allowed, mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == worker) CPU_SET(cpu, &mine);
  if (CPU_COUNT(&mine) == 1) sched_setaffinity(0, sizeof mine, &mine);
}

// Microseconds for a barrier; the best of several runs, as other processes only make it longer.
double meet_often(Team team, int worker) {
  pin(worker);
  double best = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    team.barrier(worker);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRounds; ++i) team.barrier(worker);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / kRounds);
  }
  return best;
}

double threads(const TeamShape& shape, const TeamSettings& settings) {
  const SharedMemory memory = SharedMemory::create(Team::bytes(shape));
  const Team team = Team::create(memory.span(), shape, settings);
  std::vector<std::jthread> others;
  for (int w = 1; w < shape.workers(); ++w) others.emplace_back([=] { meet_often(team, w); });
  double took = 0;
  std::jthread([&] { took = meet_often(team, 0); }).join();
  return took;
}

double processes(const TeamShape& shape, const TeamSettings& settings) {
  const SharedMemory memory = SharedMemory::create(Team::bytes(shape));
  const Team team = Team::create(memory.span(), shape, settings);
  for (int w = 1; w < shape.workers(); ++w)
    if (fork() == 0) {
      meet_often(team, w);
      _exit(0);
    }
  double took = 0;
  std::jthread([&] { took = meet_often(team, 0); }).join();
  while (wait(nullptr) > 0) {
  }
  return took;
}

}  // namespace
}  // namespace dpt

int main() {
  const unsigned cores = std::max(2U, std::thread::hardware_concurrency());
  for (int workers = 2; workers <= static_cast<int>(cores); workers *= 2) {
    fmt::print("{} threads:   {:.3f} us a barrier\n", workers,
               dpt::threads({.ranks = 1, .workers_per_rank = workers}, {}));
    fmt::print("{} processes: {:.3f} us a barrier\n", workers,
               dpt::processes({.ranks = workers, .workers_per_rank = 1}, {}));
  }
}
