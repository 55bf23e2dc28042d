#include "comm/workers.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "base/fail.h"
#include "base/flush_subnormals.h"
#include "base/signals.h"
#include "base/stderr.h"

namespace dpt {
namespace {

// Pins the current thread to a core, and restores its previous cores in the destructor.
class Pinned {
 public:
  Pinned(std::span<const int> cpus, size_t index) {
    if (index >= cpus.size() || cpus[index] < 0 || cpus[index] >= CPU_SETSIZE) return;
    if (pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) != 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpus[index]), &set);
    done_ = pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
  }
  ~Pinned() {
    if (done_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
  bool done_ = false;
};

struct Failure {
  std::string report;
  int code;
  bool own;  // not TeamBroken
};

// REQUIRES: called while an exception is handled.
Failure current_failure() {
  try {
    throw;
  } catch (const TeamBroken& e) {
    return {.report = e.report(), .code = static_cast<int>(e.fault()), .own = false};
  } catch (const Error& e) {
    return {.report = e.report(), .code = static_cast<int>(e.fault()), .own = true};
  } catch (const std::bad_alloc&) {
    return {.report = "out of memory; use a smaller batch or model",
            .code = static_cast<int>(Fault::memory),
            .own = true};
  } catch (const std::exception& e) {
    return {.report = e.what(), .code = static_cast<int>(Fault::failed), .own = true};
  } catch (...) {
    return {.report = "an exception of unknown type",
            .code = static_cast<int>(Fault::failed),
            .own = true};
  }
}

// A connection to another rank or host that broke says less than that rank, the launcher or the
// control channel says a moment later.
void await_reason(Team team) noexcept {
  constexpr std::chrono::milliseconds kPatience(1000), kPeriod(10);
  if (team.shape().ranks == 1 && team.host().empty()) return;
  for (std::chrono::milliseconds waited(0); waited < kPatience && !team.broken(); waited += kPeriod)
    std::this_thread::sleep_for(kPeriod);
}

}  // namespace

void report_failure(Team team, int rank) noexcept {
  const Failure failure = current_failure();
  if (!failure.own) return;
  if (failure.code == static_cast<int>(Fault::rank)) await_reason(team);
  team.break_up(rank, failure.report, failure.code, true);
}

void run_workers(Team team, int rank, const std::function<void(int worker)>& body,
                 std::span<const int> cpus) {
  const int count = team.shape().workers_per_rank, first = rank * count;
  std::mutex mutex;
  std::exception_ptr own, broken;
  const auto work = [&](int index) {
    const Pinned pinned(cpus, static_cast<size_t>(index));
    const FlushSubnormals flush;
    try {
      body(first + index);
    } catch (...) {
      report_failure(team, rank);
      const Failure failure = current_failure();
      const std::lock_guard lock(mutex);
      std::exception_ptr& slot = failure.own ? own : broken;
      if (!slot) slot = std::current_exception();
    }
  };
  bool started = true;
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < count; ++i) {
      try {
        others.emplace_back(work, i);
      } catch (const std::exception& e) {  // workers that run already wait for this one
        const std::string why = fmt::format(
            "cannot start worker {} of {}: {}; raise the limit on processes (ulimit -u), or use "
            "fewer with cores=N",
            i, count, e.what());
        team.break_up(rank, why);
        const std::lock_guard lock(mutex);
        own = std::make_exception_ptr(Error(Fault::rank, why));
        started = false;
        break;
      }
    }
    if (started) work(0);
  }
  if (own) std::rethrow_exception(own);
  if (broken) std::rethrow_exception(broken);
}

int run_rank(Team team, int rank, const std::function<int()>& body) noexcept {
  try {
    const int code = body();
    const bool stopped = team.agreed_stop() != 0 && code == exit_code_of(team.agreed_stop());
    // Whoever returns a code has printed why.
    if (code != 0 && !stopped &&
        team.break_up(rank, fmt::format("{} ended with code {}", team.name_of(rank), code), code,
                      true))
      team.claim_message(rank);
    return code;
  } catch (...) {
    const Failure failure = current_failure();
    if (failure.own) team.break_up(rank, failure.report, failure.code, true);
    // One of this rank's workers may have broken it up
    const bool first = failure.own && team.broken_by() == rank;
    if (first && team.claim_message(rank)) {
      print_stderr("dptrain: {}{}\n", team.prefix_of(rank), failure.report);
    }
    return failure.own ? failure.code : static_cast<int>(Fault::rank);
  }
}

}  // namespace dpt
