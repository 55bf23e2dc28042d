#include "train/memory_estimate.h"

#include <algorithm>
#include <future>
#include <memory>
#include <vector>

#include "backend/cpu/scratch.h"
#include "base/fail.h"
#include "base/machine.h"
#include "base/units.h"
#include "engine/compressed.h"
#include "engine/own_states.h"
#include "session/later_gradients.h"
#include "train/run_memory.h"

namespace dpt {
namespace {

// The memory that all workers of this machine share.
MemoryEstimate shared_memory_of(const Session& s) {
  const Buffers::Sizes& sizes = s.layout.buffers;
  constexpr double kFloat = sizeof(float);
  MemoryEstimate m;
  m.weights = kFloat * static_cast<double>(sizes.weights) * sizes.replicas;
  m.gradients = (kFloat * static_cast<double>(sizes.stored) +
                 sizeof(uint16_t) * static_cast<double>(sizes.halved)) *
                sizes.own_shards.value_or(ShardRange{0, sizes.shards}).count;
  const double states =
      kFloat * static_cast<double>(sizes.trainable) * s.settings.states() * sizes.replicas;
  // Of states that other hosts have, this one has address space, but no pages.
  m.states = s.devices.cpus_span_hosts() ? states / s.devices.topology.hosts() : states;
  m.activations = static_cast<double>(sizes.activations);
  m.shared = static_cast<double>(RunMemory::bytes(s)) - m.activations - (states - m.states);
  return m;
}

double bytes_of(const Dataset& d) {
  const auto bytes = [](const Table& t) {
    return static_cast<double>(t.stored()) * static_cast<double>(size_of(t.desc.dtype));
  };
  const auto &x = d.inputs.data, &y = d.targets.data;
  const bool shared = !x.owner_before(y) && !y.owner_before(x);  // windows of the same text
  const bool kept = !d.reader && !shared;                        // a reader makes samples on demand
  return (kept ? bytes(d.inputs) : 0) + bytes(d.targets);
}

struct KernelBytes {
  double own = 0;      // per process: kernels, and code that they generate
  double scratch = 0;  // per worker
};

// Prepares one worker's kernels in a thread, as a worker does. Caches that the process shares
// remain.
KernelBytes prepare_kernels(const CompiledModel& model) {
  KernelBytes out;
  const auto prepare = [&] {
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const auto* programs : {&model.programs, &model.test_programs})
      for (const auto& [rows, program] : *programs)
        for (Part part : {Part::prologue, Part::forward, Part::loss, Part::backward})
          for (const Instruction& i : program.part(part)) {
            const bool whole = !i.each_shard || program.shard_graphs.empty();
            const Graph& graph = whole ? program.graph : program.shard_graphs.rbegin()->second;
            const int64_t samples = whole ? rows.total() : rows.largest;
            kernels.push_back(dpt::prepare(i, query_of(graph, i.node, {{samples}, rows.largest})));
          }
    out.scratch = static_cast<double>(scratch_bytes());
    out.own = static_cast<double>(memory_use().own);
  };
  const auto before = static_cast<double>(memory_use().own);
  std::async(std::launch::async, prepare).get();
  out.own = std::max(0.0, out.own - before);
  return out;
}

// Samples made on demand: the current batch and the next one.
double ahead_bytes(const Dataset& d, int64_t batch) {
  if (!d.reader) return 0;
  return 2.0 * static_cast<double>(batch) * static_cast<double>(d.inputs.sample().elements());
}

// Memory of workers beyond the shared buffers. The constants were measured with the shipped specs
// (x86-64, glibc 2.36) and rounded; tests/report/memory.py compares.
double worker_bytes(const Session& s, const KernelBytes& kernels) {
  constexpr double kFloat = sizeof(float);
  constexpr double kCode = 250 * kKiB;    // pages of the program that only a step touches
  constexpr double kRank = 150 * kKiB;    // pages that a rank's process copied on write
  constexpr double kThread = 130 * kKiB;  // stack, and the thread's glibc heap
  const Topology& topology = s.devices.topology;
  const Rows own_workers = topology.workers_of_host(topology.host);
  const auto ranks = static_cast<double>(topology.ranks_of_host(topology.host).count()),
             workers = static_cast<double>(own_workers.count());
  double out = ranks > 1 ? ranks * kRank : kCode;  // with several ranks, file pages are not counted
  out += (workers - ranks) * kThread;
  // The next epoch's order is made while the last one still exists; with per-replica sampling, each
  // rank derives its own from a common order.
  const double order = sizeof(uint32_t) * static_cast<double>(s.data.train_samples());
  out += order * (s.batches.train->per_replica_sampling() ? ranks + 2 : 2 * ranks);
  for (int64_t w = own_workers.begin; w < own_workers.end; ++w) {
    const std::vector<UpdatePiece>& share = s.shares.workers[static_cast<size_t>(w)];
    out += kFloat * static_cast<double>(tile_elements(share) +
                                        matrix_workspace(share, s.parameter_groups.matrices));
    if (s.devices.own_states())
      out += kFloat * static_cast<double>(OwnStates::elements(share)) * s.settings.states();
  }
  if (s.devices.exchange.compress)
    out += workers * kFloat * static_cast<double>(CompressedGradients::kTile) *
           (s.devices.topology.shards + 1);
  out += workers * kernels.scratch + (ranks - 1) * kernels.own;
  out += ahead_bytes(s.data.train, s.batches.global_batch);
  if (s.data.test) out += ahead_bytes(*s.data.test, s.settings.spec.evaluate.batch_size);
  if (s.batches.train->accumulate() > 1)
    out += workers * static_cast<double>(
                         later_bytes(s.model.programs.begin()->second, [](int) { return true; }));
  return out;
}

}  // namespace

void check_memory(const Session& s) {
  const MemoryEstimate m = shared_memory_of(s);
  const auto have = static_cast<double>(usable_memory());
  const double lasting = m.shared + (s.devices.own_states() ? m.states : 0);
  if (lasting + m.activations > have)
    fail(Fault::memory,
         "the run needs {:.0f} MiB ({:.0f} MiB of weights, gradients of {} shards and optimizer "
         "states, {:.0f} MiB of activations), but {:.0f} MiB are free; use a smaller batch, fewer "
         "shards, or a smaller model",
         (lasting + m.activations) / kMiB, lasting / kMiB, s.devices.topology.shards,
         m.activations / kMiB, have / kMiB);
}

MemoryEstimate estimate_memory(const Session& s) {
  check_memory(s);
  MemoryEstimate m = shared_memory_of(s);
  // A GPU's kernels are prepared on the GPU.
  const KernelBytes kernels = s.devices.on_gpu() ? KernelBytes{} : prepare_kernels(s.model);
  const MemoryUse now = memory_use();
  m.data = bytes_of(s.data.train) + (s.data.final_test ? bytes_of(*s.data.final_test) : 0);
  if (s.data.test && s.data.test_rows.empty())
    m.data += bytes_of(*s.data.test);  // else it is the training set's
  m.program = std::max(0.0, static_cast<double>(now.resident) - (s.data.train.made ? m.data : 0));
  m.workers = worker_bytes(s, kernels);
  m.before = static_cast<double>(now.peak);
  return m;
}

}  // namespace dpt
