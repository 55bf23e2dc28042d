#include "report/measure.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

#include <unistd.h>

#include "base/fail.h"
#include "base/machine.h"
#include "checkpoint/model_file.h"
#include "comm/shared_memory.h"
#include "describe/device_usage.h"
#include "engine/gpu/launch_queue.h"
#include "session/make_plan.h"
#include "train/memory_estimate.h"
#include "train/run.h"

namespace dpt {
namespace {

constexpr size_t kMostWorkers = 1024;  // see place_workers()
constexpr size_t kLongestText = 4096;

// Shared memory in which the processes of a run leave their measurements for the measuring process.
struct Notes {
  RunSteps steps;
  int cores[kMostWorkers];
  size_t core_count = 0;
  PlanStepClock clocks[kMostWorkers];
  MemoryUse ranks[kMostWorkers];
  MemoryUse launcher;  // the ranks' parent; a single rank is its own
  RowFacts facts;
  bool begun = false;  // the session could be made
  int fault = 0;
  char text[kLongestText] = {};  // the error, or the description of the data

  void write(const std::string& what) {
    const size_t size = std::min(what.size(), kLongestText - 1);
    std::memcpy(text, what.data(), size);
    text[size] = 0;
  }
  void refuse(const Error& e) {
    fault = static_cast<int>(e.fault());
    write(e.report());
  }
};

// At most how many steps complete together on a GPU: steps of a small network are captured as CUDA
// graphs, and at least half of the instructions of a step become graph nodes.
int64_t steps_together(const Devices& devices, const CompiledModel& model) {
  if (!devices.captures_steps()) return 1;
  const Program& program = model.programs.begin()->second;
  const size_t nodes = program.forward.size() + program.loss.size() + program.backward.size();
  return static_cast<int64_t>(LaunchQueue::together((nodes + 1) / 2));
}

RowFacts facts_of(const Session& s) {
  StepRows rows;
  s.batches.train->step(0, rows);
  std::vector<int64_t> samples(static_cast<size_t>(s.devices.topology.total_workers()));
  for (const auto& micro : rows.micro)
    for (int shard = 0; shard < s.devices.topology.shards; ++shard)
      for (int device = 0; device < s.devices.topology.devices_per_replica; ++device)
        samples[static_cast<size_t>(s.devices.topology.owner(shard, device))] +=
            micro[static_cast<size_t>(shard)].rows.count();
  const auto [fewest, most] = std::ranges::minmax(samples);
  return {
      .ranks = s.devices.topology.ranks,
      .workers = s.devices.topology.total_workers(),
      .gpus = static_cast<int>(
          std::set<int>(s.devices.gpu_of_worker.begin(), s.devices.gpu_of_worker.end()).size()),
      .together = steps_together(s.devices, s.model),
      .fewest = fewest,
      .most = most,
      .barriers = barriers_of_step(s),
      .loss_on_one = s.devices.topology.loss_device >= 0 && s.devices.topology.devices_per_rank > 1,
      .remote = remote_share(s),
      .bubble = s.plan.schedule.empty() ? 0 : predicted_timing(s.model, s.plan).bubble,
      .predicted_bytes = estimate_memory(s).peak()};
}

int run_measured(const Session& s, Notes& notes) {
  check_initial_weights(s.settings, s.model);
  for (int w = 0; w < s.devices.topology.total_workers(); ++w)
    new (&notes.clocks[w]) PlanStepClock(notes.steps.timed, notes.steps.marked);
  notes.facts = facts_of(s);
  notes.write(s.data.train.description);
  notes.begun = true;
  const auto last = [&](int rank) {
    notes.ranks[rank] = memory_use();
    if (rank == 0 && s.devices.topology.ranks > 1) notes.launcher = memory_use(getppid());
  };
  const auto workers = static_cast<size_t>(s.devices.topology.total_workers());
  const bool pins = !s.devices.on_gpu() && workers <= notes.core_count;
  const Probe probe{.clocks = std::span(notes.clocks).first(workers),
                    .last = last,
                    .cores = std::span(notes.cores).first(pins ? workers : 0)};
  return run(s, {.probe = &probe});
}

WorkerSeconds spent(const Notes& notes) {
  WorkerSeconds out;
  const bool alone = notes.facts.workers == 1;
  for (int w = 0; w < notes.facts.workers; ++w) {
    const PlanStepClock& clock = notes.clocks[w];
    const double update = clock.seconds(PlanStepClock::update);
    const double exchange =
        alone ? 0 : clock.seconds(PlanStepClock::exchange) + update * notes.facts.remote;
    const double waiting = clock.seconds(PlanStepClock::waiting);
    const double compute = clock.seconds(PlanStepClock::compute) + update +
                           clock.seconds(PlanStepClock::exchange) - exchange;
    const double busy = compute + exchange;  // part of the waiting may also have used the core
    out += {.compute = compute,
            .communication = exchange,
            .waiting = waiting,
            // While waiting for its GPU, the host sleeps.
            .taken = notes.facts.gpus > 0 ? 0 : std::clamp(busy - clock.on_core(), 0.0, busy)};
    out.slowest = std::max(out.slowest, compute);
  }
  return out;
}

// One process: its peak. Several: the larger of what they use together after the last step, when
// all memory has been touched, and the launcher's peak. File pages count once, for the process with
// the most of them.
double peak_bytes(const Notes& notes) {
  if (notes.facts.ranks == 1) return static_cast<double>(notes.ranks[0].peak);
  size_t own = notes.launcher.own, files = notes.launcher.files;
  for (int r = 0; r < notes.facts.ranks; ++r) {
    own += notes.ranks[r].own;
    files = std::max(files, notes.ranks[r].files);
  }
  return static_cast<double>(std::max(own + files, notes.launcher.peak));
}

}  // namespace

double remote_share(const Session& s) {
  // A stage's gradients are summed over its own workers only.
  const double workers =
                   s.devices.topology.total_workers() / s.devices.topology.devices_per_replica,
               shards = s.devices.topology.shards;
  const Buffers::Sizes& sizes = s.layout.buffers;
  // Compressed gradients are read as 16-bit numbers.
  const double stored = static_cast<double>(sizes.stored) * (s.devices.exchange.compress ? 0.5 : 1);
  const auto all = static_cast<double>(sizes.trainable);
  // Weights and states are read and written, stored gradients are read.
  const double moved = stored * shards + all * 2 * (1 + s.settings.states());
  return moved > 0 ? stored * shards * (1 - 1 / workers) / moved : 0;
}

int run_row(int descriptor, const OpenSession& open) {
  const SharedMemory memory = SharedMemory::adopt(descriptor, sizeof(Notes));
  Notes& notes = *reinterpret_cast<Notes*>(memory.data());
  try {
    return run_measured(*open({"epochs=null", fmt::format("steps={}", notes.steps.all())}), notes);
  } catch (const Error& e) {
    notes.refuse(e);
  } catch (const std::exception& e) {
    notes.refuse(Error(Fault::failed, e.what()));
  }
  return notes.fault;
}

Reading measure(const BenchRow& row, const RunSteps& steps, std::span<const int> cores,
                const StartRow& start) {
  const SharedMemory memory = SharedMemory::create(sizeof(Notes));
  Notes& notes = *new (memory.data()) Notes;
  notes.steps = steps;
  notes.core_count = std::min(cores.size(), kMostWorkers);
  std::ranges::copy(cores.first(notes.core_count), notes.cores);
  const int code = start(row, memory.fd());
  if (notes.fault != 0 && (!notes.begun || notes.fault == static_cast<int>(Fault::memory)))
    throw Refused(static_cast<Fault>(notes.fault), notes.text);
  if (notes.fault != 0) throw Error(static_cast<Fault>(notes.fault), notes.text);
  if (code != 0)  // the run has printed the reason
    throw Error(code <= static_cast<int>(Fault::diverged) ? static_cast<Fault>(code) : Fault::rank,
                fmt::format("{} ended with code {}; nothing was measured", name_of(row), code));
  const PlanStepClock& first = notes.clocks[0];
  return {.seconds = first.timed_seconds(),
          .samples = first.timed_samples(),
          .spent = spent(notes),
          .peak_bytes = peak_bytes(notes),
          .facts = notes.facts,
          .data = notes.text};
}

}  // namespace dpt
