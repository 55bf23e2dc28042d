// What a CPU worker reads and writes of the memory that other workers' parts of a step lie in.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/ranges.h"
#include "base/tensor.h"
#include "describe/traffic_lines.h"
#include "engine/step_numbers.h"
#include "session/buffers.h"
#include "session/later_gradients.h"
#include "session/own_weights.h"

namespace dpt {
namespace {

class CpuTraffic {
 public:
  CpuTraffic(const Session& s, int worker)
      : s_(s),
        topology_(s.devices.topology),
        worker_(worker),
        device_(s.devices.topology.device_of(worker)),
        summed_(s.devices.topology.shards_with(worker)),
        updating_(s.devices.topology.workers_with(worker)),
        shares_(s.shares.workers) {
    s_.batches.train->step(0, rows_);
    for (int64_t w = updating_.begin; w < updating_.end; ++w)
      for (const UpdatePiece& piece : shares_[static_cast<size_t>(w)])
        if (w != worker) others_.add(piece.begin * sizeof(float), piece.end * sizeof(float));
    for (const PlanStep& step : s.plan.update)
      sums_first_ = sums_first_ || (step.quantity == Quantity::squares && always(step));
  }

  WorkerTraffic lines() {
    const int micro = static_cast<int>(rows_.micro.size());
    for (const PlanStep& step : s_.plan.prologue) execute(step, 0);
    for (int m = 0; m < micro; ++m)
      for (const PlanStep& step : s_.plan.micro) execute(step, m);
    if (!s_.plan.stages.empty())
      for (const PlanStep& step : s_.plan.stages[static_cast<size_t>(device_)])
        execute(step, step.chunk);
    TrafficLines out;
    out.add("weights", {.read = weights_});
    for (const TrafficLine& line : lines_.lines()) out.add(line.name, line.bytes);
    for (const PlanStep& step : s_.plan.update) out.add(name_of(step), update(step));
    return out.lines();
  }

 private:
  static bool always(const PlanStep& step) { return step.when == PlanStep::When::always; }
  int last_device() const { return s_.model.graph.stage_device.back(); }
  int device_of(int stage) const { return s_.model.graph.stage_device[static_cast<size_t>(stage)]; }

  void execute(const PlanStep& step, int micro) {
    if (step.op == PlanOp::run)
      for (size_t g = 0; g < s_.model.shard_groups.size(); ++g)
        run(step, g, static_cast<size_t>(micro));
    if (step.op == PlanOp::run && s_.plan.sync_points() > 0)
      sync(step, rows_.micro[static_cast<size_t>(micro)]);
    if (step.op == PlanOp::sum && step.quantity == Quantity::divisor)
      lines_.add(name_of(step),
                 {.read = sizeof(double) * others(&CpuTraffic::weight_owner, summed_)});
    if (step.op == PlanOp::draw_masks && worker_ == 0)
      lines_.add(name_of(step), {.written = masks(rows_.micro[static_cast<size_t>(micro)])});
  }

  // The worker that writes the shard's loss, and its part of the divisor.
  int loss_owner(int shard) const {
    return topology_.loss_device >= 0 ? topology_.loss_owner(shard)
                                      : topology_.owner(shard, last_device());
  }
  int weight_owner(int shard) const {
    return s_.model.divisor == Divisor::targets ? topology_.owner(shard, last_device())
                                                : loss_owner(shard);
  }
  // How many of these shards another worker owns.
  uint64_t others(int (CpuTraffic::*owner)(int) const, Rows shards) const {
    uint64_t out = 0;
    for (int64_t i = shards.begin; i < shards.end; ++i)
      out += (this->*owner)(static_cast<int>(i)) != worker_ ? 1 : 0;
    return out;
  }
  // How many of the shards whose gradients this worker sums others compute on a device.
  uint64_t other_shards(int device) const {
    uint64_t out = 0;
    for (int64_t i = summed_.begin; i < summed_.end; ++i)
      out += topology_.owner(static_cast<int>(i), device) != worker_ ? 1 : 0;
    return out;
  }

  int executor(const PlanStep& step, int first) const {
    return step.actor == PlanStep::Actor::loss_device ? topology_.loss_owner(first)
                                                      : topology_.owner(first, device_);
  }

  // Null: the group has no rows.
  const Program* program_of(size_t group, size_t micro) const {
    const ShardGroupRows rows = shard_group_rows(rows_.micro[micro], s_.model.shard_groups[group]);
    if (rows.total() == 0) return nullptr;
    const bool last =
        micro > 0 && !s_.model.last_programs.empty() && micro + 1 == rows_.micro.size();
    return &(last ? s_.model.last_programs : s_.model.programs).at(rows);
  }

  void run(const PlanStep& step, size_t group, size_t micro) {
    const int first = static_cast<int>(s_.model.shard_groups[group].begin);
    if (executor(step, first) != worker_) return;
    const Program* const program = program_of(group, micro);
    if (!program) return;
    const int stage = s_.plan.stages.empty() ? -1 : step.part == Part::loss ? -1 : step.stage;
    const auto key = std::tuple(group, program, step.part, stage);
    auto known = runs_.find(key);
    if (known == runs_.end())
      known = runs_.emplace(key, accesses(*program, first, step.part, stage)).first;
    lines_.add(name_of(step), known->second);
  }

  // Calls f(begin, end) for the bytes of a value, counted from the memory that it lies in.
  template <class F>
  static void each_part(const Program& p, ValueId v, F f) {
    const Location& at = p.location[static_cast<size_t>(v)];
    const size_t bytes = p.graph[v].desc.bytes();
    const bool by_shard = p.batch_scaling[static_cast<size_t>(v)] == BatchScaling::shard &&
                          (at.arena == Arena::activations || at.arena == Arena::scratch);
    if (!by_shard) return f(at.offset, at.offset + bytes);
    for (size_t i = 0; i < p.rows.shards.size(); ++i)
      if (const size_t begin = at.offset + i * p.shard_stride(v); p.rows.shards[i] > 0)
        f(begin, begin + bytes);
  }

  // What the instructions of a part, of one stage or of all on this worker's device, do with other
  // workers' memory of the group.
  Traffic accesses(const Program& p, int first_shard, Part part, int stage) {
    Traffic out;
    std::map<std::pair<Arena, int>, Ranges> read, made;
    const auto remote = [&](const Location& at) {
      return (at.arena == Arena::activations || at.arena == Arena::scratch) &&
             topology_.owner(first_shard, device_of(at.stage)) != worker_;
    };
    for (const Instruction& i : p.part(part)) {
      const GraphNode& n = p.graph.nodes[i.node];
      if (stage >= 0 ? n.stage != stage : device_of(n.stage) != device_ && part != Part::loss)
        continue;
      for (const ValueId v : n.in) {
        const Location& at = p.location[static_cast<size_t>(v)];
        if (at.arena == Arena::weights) read_weights(at.offset, p.graph[v].desc.bytes());
        if (!remote(at)) continue;
        const std::pair memory(at.arena, at.stage);
        each_part(p, v, [&](size_t begin, size_t end) {
          made[memory].each_gap(begin, end,
                                [&](size_t a, size_t b) { out.read += read[memory].add(a, b); });
        });
      }
      for (const ValueId v : n.out) {
        const Location& at = p.location[static_cast<size_t>(v)];
        if (remote(at))
          each_part(p, v, [&](size_t begin, size_t end) {
            out.written += made[{at.arena, at.stage}].add(begin, end);
          });
      }
    }
    return out;
  }

  // Bytes [begin, begin + bytes) of the weights: those that other workers update count.
  void read_weights(size_t begin, size_t bytes) {
    read_.each_gap(begin, begin + bytes, [&](size_t from, size_t to) {
      weights_ += to - from;
      others_.each_gap(from, to, [&](size_t a, size_t b) { weights_ -= b - a; });
    });
    read_.add(begin, begin + bytes);
  }

  // The sums that other workers' shards leave at sync points.
  void sync(const PlanStep& step, const std::vector<ShardRows>& micro) {
    if (step.part != Part::forward && step.part != Part::backward) return;
    Rows with;  // the shards whose sums this worker reads
    const Program* program = nullptr;
    for (size_t g = 0; g < s_.model.shard_groups.size(); ++g) {
      const int first = static_cast<int>(s_.model.shard_groups[g].begin);
      if (topology_.owner(first, device_) != worker_) continue;
      const ShardGroupRows rows = shard_group_rows(micro, s_.model.shard_groups[g]);
      if (rows.total() == 0) continue;
      program = &s_.model.programs.at(rows);
      with = topology_.replica_of(first, s_.settings.spec.sync_batch_norm);
    }
    if (!program) return;
    uint64_t shards = 0;
    for (int64_t i = with.begin; i < with.end; ++i)
      if (micro[static_cast<size_t>(i)].rows.count() > 0 &&
          topology_.owner(static_cast<int>(i), device_) != worker_)
        ++shards;
    for (const Instruction& i : program->part(step.part)) {
      const GraphNode& n = program->graph.nodes[i.node];
      if (!i.sync_point || (!s_.plan.stages.empty() && n.stage != step.stage)) continue;
      const auto count = static_cast<uint64_t>(program->graph[n.out[0]].desc.shape.elements());
      lines_.add(name_of(step), {.read = shards * count * sizeof(double)});
    }
  }

  uint64_t masks(const std::vector<ShardRows>& micro) const {
    uint64_t out = 0;
    for (size_t v = 0; v < s_.model.graph.values.size(); ++v) {
      const Value& value = s_.model.graph.values[v];
      if (value.role != Role::mask) continue;
      for (const Rows& group : s_.model.shard_groups) {
        const ShardGroupRows rows = shard_group_rows(micro, group);
        if (rows.total() == 0) continue;
        const int stage = s_.model.programs.at(rows).location[v].stage;
        if (topology_.owner(static_cast<int>(group.begin), device_of(stage)) != worker_)
          out += static_cast<uint64_t>(rows.total() * value.desc.shape.tail(1).elements()) *
                 sizeof(float);
      }
    }
    return out;
  }

  int64_t partials() const {
    return static_cast<int64_t>((s_.model.layout.stored + Buffers::kChunk - 1) / Buffers::kChunk);
  }
  // The norm partials that this worker computes.
  Rows own_partials() const {
    const int64_t me = worker_ - updating_.begin, workers = updating_.count();
    return {partials() * me / workers, partials() * (me + 1) / workers};
  }
  // Elements of stored gradients whose sum this worker computes for the norm.
  UpdateRange own_chunks() const {
    const auto [first, last] = own_partials();
    const auto at = [&](int64_t chunk) {
      return std::min(s_.model.layout.stored, static_cast<size_t>(chunk) * Buffers::kChunk);
    };
    return {at(first), at(last)};
  }
  size_t gradient_bytes() const {
    return s_.devices.exchange.compress ? sizeof(uint16_t) : sizeof(float);
  }

  Traffic update(const PlanStep& step) const {
    if (step.op == PlanOp::all_reduce) return weight_average();
    if (!always(step)) return {};
    if (step.op == PlanOp::sum && step.quantity == Quantity::loss) return loss_sum();
    if (step.op == PlanOp::sum && step.quantity == Quantity::squares) {
      Traffic out;
      const UpdateRange own = own_chunks();
      for (int d = 0; d < topology_.devices_per_replica; ++d)
        for (const UpdateRange& r : stored_ranges(s_.model.graph, s_.model.layout,
                                                  [&](int stage) { return device_of(stage) == d; }))
          out.read +=
              overlap(own.begin, own.end, r.begin, r.end) * other_shards(d) * gradient_bytes();
      return out;
    }
    if (step.op == PlanOp::decide && sums_first_)
      return {.read = static_cast<uint64_t>(partials() - own_partials().count()) * sizeof(double)};
    Traffic out;
    if (step.op == PlanOp::update)
      for (const UpdatePiece& p : shares_[static_cast<size_t>(worker_)])
        out.read += p.gradient_instruction < 0 ? stored(p) : fused(p);
    return out;
  }

  // In every replica, this worker reads the elements of its average that others have updated.
  // Running statistics are updated by a replica's first worker.
  Traffic weight_average() const {
    const auto replicas = static_cast<uint64_t>(topology_.replicas());
    const UpdateRange trained = averaged_parameters(s_.model, topology_, worker_);
    uint64_t own = 0, all = 0;
    for (const auto& pieces : shares_)
      for (const UpdatePiece& p : pieces) {
        const size_t count = overlap(p.begin, p.end, trained.begin, trained.end);
        all += count;
        if (&pieces == &shares_[static_cast<size_t>(worker_)]) own += count;
      }
    uint64_t elements = (all - own) * static_cast<uint64_t>(1 + s_.settings.states());
    const uint64_t others = replicas - (worker_ == updating_.begin ? 1 : 0);
    for (const UpdateRange& r : averaged_buffers(s_.model, topology_, worker_))
      elements += r.count() * others;
    uint64_t copied = 0;
    for (const UpdateRange& r : copied_buffers(s_.model, worker_))
      copied += r.count() * (replicas - 1);
    return {.read = elements * sizeof(float), .written = (elements + copied) * sizeof(float)};
  }

  Traffic loss_sum() const {
    const Rows all{0, topology_.shards};
    uint64_t count = others(&CpuTraffic::loss_owner, all);
    if (topology_.replicas_own_weights())
      count += s_.model.divisor == Divisor::one ? 0 : others(&CpuTraffic::weight_owner, all);
    else if (reports_rank0_loss(s_.settings.spec, s_.devices, s_.model))
      count += others(&CpuTraffic::weight_owner, topology_.shards_of_rank(0));
    return {.read = count * sizeof(double)};
  }

  uint64_t stored(const UpdatePiece& p) const {
    const size_t count = p.end - p.begin;
    if (!sums_first_) return count * other_shards(device_) * gradient_bytes();
    const UpdateRange own = own_chunks();
    return (count - overlap(p.begin, p.end, own.begin, own.end)) * sizeof(float);
  }

  // The factors of the piece's rows: some columns of the one, all of the other.
  uint64_t fused(const UpdatePiece& p) const {
    uint64_t out = 0;
    for (size_t g = 0; g < s_.model.shard_groups.size(); ++g) {
      const Program* const program = program_of(g, 0);
      const auto first = static_cast<int>(s_.model.shard_groups[g].begin);
      const bool summed = summed_.begin <= first && first < summed_.end;
      if (!program || !summed || topology_.owner(first, device_) == worker_) continue;
      const Instruction& i = program->update[static_cast<size_t>(p.gradient_instruction)];
      const GraphNode& n = program->graph.nodes[i.node];
      const bool transposed = program->graph[n.out[0]].desc.layout == Layout::transposed;
      const TensorDesc& left = program->graph[n.in[transposed ? 1 : 0]].desc;
      const TensorDesc& right = program->graph[n.in[transposed ? 0 : 1]].desc;
      const int64_t width = left.shape.back();
      out +=
          left.bytes() / static_cast<size_t>(width) * static_cast<size_t>(p.rows) + right.bytes();
    }
    return out;
  }

  const Session& s_;
  const Topology& topology_;
  int worker_, device_;
  Rows summed_, updating_;  // as in CpuWorker
  const std::vector<std::vector<UpdatePiece>>& shares_;
  StepRows rows_;
  bool sums_first_ = false;  // a step sums all gradients before the update
  std::map<std::tuple<size_t, const Program*, Part, int>, Traffic> runs_;
  Ranges others_;  // bytes of the weights that other workers update
  Ranges read_;    // bytes of the weights that are read
  uint64_t weights_ = 0;
  TrafficLines lines_;
};

}  // namespace

WorkerTraffic cpu_traffic(const Session& s, int worker) { return CpuTraffic(s, worker).lines(); }

}  // namespace dpt
