// The two CPU workers of a pipeline of two devices, with the classes that execute its plan.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/cpu/one_worker.h"
#include "engine/cpu/pipeline.h"

namespace dpt {

// What one worker needs to run stages. Thread: the one that uses the worker.
struct StageRunner {
  explicit StageRunner(CpuWorker& its) : worker(its) {}

  CpuWorker& worker;
  BindingTable bindings{worker};
  SyncPoints sync_points{worker, bindings};
  CpuBatchInput input{worker, *worker.session.data.loader, nullptr};
  ShardLosses losses{worker, bindings, input};
  ShardGradients gradients{worker};
  StagePosts posts{worker};
};

class TwoWorkers {
 public:
  // traces: of both workers; empty: none.
  TwoWorkers(const std::string& yaml, const std::vector<std::string>& how,
             const std::array<Trace*, 2>& traces = {})
      : one_(yaml, how),
        first_(*one_.session, one_.buffers, one_.team, 0, nullptr, traces[0]),
        second_(*one_.session, one_.buffers, one_.team, 1, nullptr, traces[1]),
        runners_{std::make_unique<StageRunner>(first_), std::make_unique<StageRunner>(second_)} {}

  const OneWorker& one() const { return one_; }
  const Session& session() const { return *one_.session; }
  const Buffers& buffers() const { return one_.buffers; }

  // Calls f(runner) for both workers, each in a thread of its own.
  void run(const std::function<void(StageRunner&)>& f) {
    std::exception_ptr failed;
    {
      const std::jthread other([&] {
        try {
          f(*runners_[1]);
        } catch (const std::exception& e) {
          failed = std::current_exception();
          one_.team.break_up(0, e.what());
        }
      });
      try {
        f(*runners_[0]);
      } catch (const std::exception& e) {
        one_.team.break_up(0, e.what());
        throw;
      }
    }
    if (failed) std::rethrow_exception(failed);
  }

 private:
  OneWorker one_;
  CpuWorker first_, second_;
  std::array<std::unique_ptr<StageRunner>, 2> runners_;
};

}  // namespace dpt
