// What a GPU exchanges with other GPUs and with the host, instruction by instruction.
#include <algorithm>
#include <any>
#include <map>
#include <utility>

#include "describe/traffic_lines.h"
#include "engine/gpu/batch_input.h"
#include "engine/gpu/gather.h"
#include "engine/gpu/launch_queue.h"
#include "engine/gpu/stages.h"
#include "engine/gpu/update.h"
#include "graph/attrs.h"
#include "graph/operator.h"
#include "session/gradient_buckets.h"

namespace dpt {
namespace {

using Actor = PlanStep::Actor;
using When = PlanStep::When;

class GpuTraffic {
 public:
  GpuTraffic(const Session& s, int worker)
      : s_(s),
        worker_(worker),
        device_(s.devices.topology.device_of(worker)),
        replica_(s.devices.topology.replica(worker)),
        replicas_(static_cast<uint64_t>(s.devices.topology.replicas())),
        share_(s.shares.gpus[static_cast<size_t>(device_)]) {
    s_.batches.train->step(0, rows_);
  }

  WorkerTraffic lines() {
    for (const PlanStep& step : s_.plan.prologue) execute(step, 0);
    for (size_t m = 0; m < rows_.micro.size(); ++m)
      for (const PlanStep& step : s_.plan.micro)
        if (happens(step.when, m)) execute(step, m);
    for (size_t d = 0; d < s_.plan.stages.size(); ++d)
      for (const PlanStep& step : s_.plan.stages[d]) {
        const size_t micro = step.chunk < 0 ? 0 : static_cast<size_t>(step.chunk);
        if (static_cast<int>(d) == device_)
          execute(step, micro);
        else if (step.op == PlanOp::run && !s_.devices.stages_are_processes())
          lines_.add(name_of(step), copies(step, micro, -1));
      }
    for (const PlanStep& step : s_.plan.update) execute(step, 0);
    return lines_.lines();
  }

 private:
  bool happens(When when, size_t micro) const {
    switch (when) {
      case When::last:
        return micro + 1 == rows_.micro.size();
      case When::later:
        return micro > 0;
      case When::between:
        return micro + 1 < rows_.micro.size();
      default:
        return true;
    }
  }
  bool gathers() const {
    return s_.devices.topology.loss_device >= 0 && s_.devices.topology.replicas() > 1;
  }
  bool looks() const {
    return s_.settings.spec.clip.max_norm.has_value() || s_.precision.scaler.on;
  }
  bool elsewhere(const PlanStep& step) const {
    const bool other_side =
        step.chunk >= 0 || step.op == PlanOp::gather || step.op == PlanOp::broadcast || gathers();
    return step.device >= 0 && !other_side && step.device != device_;
  }

  void execute(const PlanStep& step, size_t micro) {
    if (!elsewhere(step)) lines_.add(name_of(step), bytes_of(step, micro));
  }

  Traffic bytes_of(const PlanStep& step, size_t micro) {
    switch (step.op) {
      case PlanOp::load:
      case PlanOp::load_targets:
        return load();
      case PlanOp::run: {
        Traffic out = sync_sums(step, micro);
        if (!s_.plan.stages.empty()) out += copies(step, micro, -1);
        return out;
      }
      case PlanOp::send:
      case PlanOp::receive:
      case PlanOp::send_receive:
        return copies(step, micro, step.device);
      case PlanOp::gather:
        return step.quantity == Quantity::outputs ? crossing(micro, true) : norm_partials();
      case PlanOp::scatter:
        return crossing(micro, false);
      case PlanOp::copy_to_host:
        return {.to_host = copied(step.quantity, true)};
      case PlanOp::copy_from_host:
        return {.from_host = copied(step.quantity, false)};
      case PlanOp::all_reduce:
      case PlanOp::reduce_scatter:
      case PlanOp::all_gather:
        return collective(step);
      case PlanOp::broadcast:
        return decision();
      default:
        return {};
    }
  }

  // Of b bytes over all replicas in a ring; passes: 2 for all_reduce, else 1.
  Traffic ring(uint64_t b, uint64_t passes) const {
    const uint64_t moved = (passes * b * (replicas_ - 1) + replicas_ - 1) / replicas_;
    return {.sent = moved, .received = moved};
  }

  // Batches that the host makes are copied once a step, with room for the largest ones.
  Traffic load() {
    if (std::exchange(loaded_, true)) return {};
    return {.from_host = staged_bytes(s_.data, s_.batches, s_.model, device_)};
  }

  // The program of this replica's rows; null: it has none.
  const Program* program_of(size_t micro) const {
    const int64_t rows = rows_.micro[micro][static_cast<size_t>(replica_)].rows.count();
    const bool last = !s_.plan.stages.empty() && micro > 0 && !s_.model.last_programs.empty() &&
                      micro + 1 == rows_.micro.size();
    for (const auto& [its, program] : last ? s_.model.last_programs : s_.model.programs)
      if (rows > 0 && its.shards[0] == rows) return &program;
    return nullptr;
  }

  Traffic sync_sums(const PlanStep& step, size_t micro) const {
    Traffic out;
    if (!s_.settings.spec.sync_batch_norm || replicas_ == 1 || step.until > 0) return out;
    if (step.part != Part::forward && step.part != Part::backward) return out;
    const Program* const mine = program_of(micro);
    const Program& p = mine ? *mine : s_.model.programs.begin()->second;
    for (const Instruction& i : p.part(step.part)) {
      const GraphNode& n = p.graph.nodes[i.node];
      if (!n.op->is(Trait::over_shards)) continue;
      if (s_.plan.stages.empty() || n.stage == step.stage)
        out += ring(p.graph[n.out[0]].desc.bytes(), 2);
    }
    return out;
  }

  // What the operation of a step copies between stages, from or to this GPU. other: only to and
  // from this device; -1: any.
  Traffic copies(const PlanStep& step, size_t micro, int other) const {
    Traffic out;
    const Program* const p = program_of(micro);
    if (!p || step.part == Part::loss) return out;
    const bool by_host =
        s_.devices.stages_are_processes() && s_.devices.exchange.backend == Exchange::Backend::host;
    for (const Instruction& i : p->part(step.part)) {
      const GraphNode& n = p->graph.nodes[i.node];
      const auto* const way = std::any_cast<Copy>(&n.attrs);
      if (!way || n.stage != step.stage) continue;
      const int from = device_of(way->from), to = device_of(way->to);
      if (from == to || (other >= 0 && from != other && to != other)) continue;
      const uint64_t bytes = p->graph[n.in[0]].desc.bytes();
      if (from == device_) (by_host ? out.to_host : out.sent) += bytes;
      if (to == device_) (by_host ? out.from_host : out.received) += bytes;
    }
    return out;
  }
  int device_of(int stage) const { return s_.model.graph.stage_device[static_cast<size_t>(stage)]; }

  // What the loss reads of other GPUs' outputs, or what their backward parts read of the loss.
  Traffic crossing(size_t micro, bool there) const {
    uint64_t moved = 0;
    const int loss = s_.devices.topology.loss_device;
    for (int shard = 0; shard < s_.devices.topology.shards; ++shard) {
      const int64_t rows = rows_.micro[micro][static_cast<size_t>(shard)].rows.count();
      if (rows == 0 || shard == loss || (worker_ != loss && worker_ != shard)) continue;
      for (const auto& [its, program] : s_.model.programs)
        if (its.shards[0] == rows) {
          const GpuGather::Crossing c = GpuGather::crossing_of(program);
          for (const ValueId v : there ? c.to_loss : c.from_loss)
            moved += program.graph[v].desc.bytes();
        }
    }
    const bool sends = (worker_ == loss) != there;
    return {.sent = sends ? moved : 0, .received = sends ? 0 : moved};
  }

  uint64_t terms(Quantity what) const {
    return what == Quantity::divisor ? static_cast<uint64_t>(s_.batches.train->accumulate())
                                     : GpuUpdate::losses_of_step(s_.devices, s_.batches);
  }
  uint64_t own_elements() const {
    uint64_t out = 0;
    for (const Bucket& piece : own_pieces(s_.devices, s_.model, share_, replica_))
      out += piece.count();
    return out;
  }

  // Where hosts sum.
  uint64_t copied(Quantity what, bool to_host) const {
    const uint64_t trained = share_.trained();
    switch (what) {
      case Quantity::gradients:
        if (to_host)
          return trained * (s_.devices.exchange.compress ? sizeof(uint16_t) : sizeof(float));
        return own_elements() * sizeof(float);
      case Quantity::weights:
        return (to_host ? own_elements() : trained) * sizeof(float);
      default:
        return (to_host ? 1 : 2) * terms(what) * sizeof(double);
    }
  }

  Traffic collective(const PlanStep& step) const {
    const auto& buckets = s_.plan.buckets[static_cast<size_t>(device_)];
    switch (step.quantity) {
      case Quantity::gradients: {
        const size_t size = s_.devices.exchange.compress ? sizeof(uint16_t) : sizeof(float);
        return ring(buckets[static_cast<size_t>(step.bucket)].count() * size,
                    step.op == PlanOp::all_reduce ? 2 : 1);
      }
      case Quantity::weights: {
        uint64_t elements = 0;
        for (const Bucket& b : buckets) elements += b.count();
        return ring(elements * sizeof(float), 1);
      }
      case Quantity::squares:
        if (step.actor == Actor::hosts)
          return {.to_host = sizeof(double), .from_host = replicas_ * sizeof(double)};
        return ring(replicas_ * sizeof(double), 2);
      default: {  // with those of the first rank alone
        const bool decides = step.quantity == Quantity::loss && s_.devices.gpus_span_hosts();
        return ring(
            (2 * terms(step.quantity) + (decides ? LaunchQueue::kDecisions : 0)) * sizeof(double),
            2);
      }
    }
  }

  // The norm partials of a pipeline's devices go to the one with the last stage, and its decision
  // to the others.
  Traffic norm_partials() const {
    const bool collects = device_ == s_.model.graph.stage_device.back();
    if (!looks()) return {};
    return to_or_from_last(!collects, sizeof(double));
  }
  Traffic decision() const {
    return to_or_from_last(device_ == s_.model.graph.stage_device.back(), gpu_decision_bytes());
  }
  // `bytes` between the device of the last stage and each other one.
  Traffic to_or_from_last(bool sends, uint64_t bytes) const {
    const bool last = device_ == s_.model.graph.stage_device.back();
    const uint64_t moved =
        bytes * (last ? static_cast<uint64_t>(s_.devices.topology.devices_per_replica) - 1 : 1);
    const bool by_host =
        s_.devices.stages_are_processes() && s_.devices.exchange.backend == Exchange::Backend::host;
    Traffic out;
    (sends ? by_host ? out.to_host : out.sent : by_host ? out.from_host : out.received) = moved;
    return out;
  }

  const Session& s_;
  int worker_, device_, replica_;
  uint64_t replicas_;
  const GpuShare& share_;
  StepRows rows_;
  bool loaded_ = false;
  TrafficLines lines_;
};

}  // namespace

WorkerTraffic gpu_traffic(const Session& s, int worker) { return GpuTraffic(s, worker).lines(); }

}  // namespace dpt
