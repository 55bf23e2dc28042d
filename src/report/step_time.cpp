#include "report/step_time.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/machine.h"
#include "parallel/schedule.h"
#include "report/numbers.h"
#include "session/make_plan.h"
#include "train/memory_estimate.h"
#include "train/run_memory.h"

namespace dpt {
namespace {

constexpr size_t kMostKernels = 10;

std::string ms(double seconds) { return time_text(1e3 * seconds); }

// A chunk's durations on each stage. The first loads the batch, the last computes the loss.
void set_pipeline(StepTime& out, const Session& s, const StepCosts& costs) {
  const auto chunks = static_cast<double>(s.batches.train->accumulate());
  std::vector<double> forward = costs.forward, backward = costs.backward;
  forward.front() += costs.load;
  forward.back() += costs.loss;
  for (double& seconds : forward) seconds /= chunks;
  for (double& seconds : backward) seconds /= chunks;
  const Timing timing = simulate(s.plan.schedule, forward, backward);
  out.compute = timing.total;
  out.bubble = timing.bubble * timing.total;
}

std::string rate_text(const KernelCost& kernel) {
  if (kernel.flops <= 0 || kernel.seconds <= 0) return "";
  return fmt::format("{:.3g} GFLOP/s", 1e-9 * kernel.flops / kernel.seconds);
}

std::string kernels_text(const StepCosts& costs) {
  double all = 0;
  for (const KernelCost& k : costs.kernels) all += k.seconds;
  std::string out = "slowest kernels, on the first worker:\n";
  for (size_t i = 0; i < std::min(kMostKernels, costs.kernels.size()); ++i) {
    const KernelCost& k = costs.kernels[i];
    out += fmt::format("  {:<16} {:<24} {:<8} {:>8} {:>4.0f} %  {:>14}  {}\n", k.layer, k.op,
                       name_of(PlanStep{.op = PlanOp::run, .part = k.part}), ms(k.seconds),
                       all > 0 ? 100 * k.seconds / all : 0, rate_text(k), k.kernel);
  }
  return out;
}

}  // namespace

StepTime predict_step(const Session& s, const StepCosts& costs) {
  StepTime out{.compute = costs.whole,
               .update = costs.after_backward(),
               .barriers = static_cast<double>(barriers_of_step(s)) * costs.barrier};
  if (!s.plan.schedule.empty())
    set_pipeline(out, s, costs);
  else if (s.devices.topology.loss_device >= 0)  // the others wait while that device computes
    out.compute = costs.load + costs.all_forward() + costs.loss + costs.all_backward();
  return out;
}

std::string assumptions_text(const Session& s, int at_once) {
  std::string out;
  const int64_t workers = s.devices.topology.workers_of_host(s.devices.topology.host).count();
  if (workers > at_once)
    out += fmt::format("  assumes a core for each of the {}; this machine has {}\n",
                       counted(workers, "worker"), at_once);
  if (s.data.train.reader)
    out += "  samples come from files: decoding them ahead of the steps is not included\n";
  return out;
}

StepCosts measured_step_costs(const Session& s) {
  if (s.devices.on_gpu())
    fail(Fault::device,
         "--time measures kernels of CPUs only; for GPUs use `dptrain bench`, which trains a few "
         "steps, or write `device: cpu`");
  check_memory(s);
  const RunMemory memory(s);
  memory.fill();
  return measure_step_costs(s, memory.buffers(), usable_cores());
}

std::string step_time_text(const Session& s) {
  const StepCosts costs = measured_step_costs(s);
  const StepTime time = predict_step(s, costs);
  std::string out = fmt::format(
      "step time, from kernels measured on {} at once:\n"
      "  load {}, forward {}, loss {}, backward {}\n"
      "  sum and update {}, {} {}\n",
      counted(costs.at_once, "core"), ms(costs.load), ms(costs.all_forward()), ms(costs.loss),
      ms(costs.all_backward()), ms(time.update), counted(barriers_of_step(s), "barrier"),
      ms(time.barriers));
  if (!s.plan.schedule.empty())
    out +=
        fmt::format("  schedule {}, of which devices wait {}\n", ms(time.compute), ms(time.bubble));
  const auto samples = static_cast<double>(s.batches.global_batch);
  out += fmt::format("  predicted: {} per step, {:.0f} samples/s, {} per epoch\n", ms(time.total()),
                     samples / time.total(),
                     ms(time.total() * static_cast<double>(s.batches.train->steps())));
  if (s.devices.topology.hosts() > 1)
    out += "  what hosts exchange takes no time here; `--link 10GbE` includes it\n";
  return out + assumptions_text(s, costs.at_once) + kernels_text(costs);
}

}  // namespace dpt
