#include "session/programs.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cuda/implementations/kernels.h"
#include "layers/model.h"
#include "session/gradient_buckets.h"
#include "session/placement.h"

namespace dpt {
namespace {

TensorDesc batch_of(const TensorDesc& sample, int64_t rows) {
  return {sample.dtype, sample.shape.batch(rows)};
}

// Whether no chunk is recomputed because the only chunk is also the last.
bool keeps_all(const Devices& devices, const SessionBatches& batches) {
  return devices.pipeline->checkpoint == Checkpointing::except_last &&
         batches.train->accumulate() == 1;
}

// What a program is for. train_last: a last chunk that keeps its activations.
enum class Purpose { train, train_last, test };

// placement: of units on the devices of a pipeline; empty: not a pipeline.
ModelQuery model_query(const Session& s, const std::vector<int>& placement, int64_t rows,
                       Purpose purpose) {
  const bool train = purpose != Purpose::test;
  ModelQuery q;
  q.input = batch_of(s.data.loader->input(), rows);
  q.target = batch_of(train ? s.data.loader->target() : s.data.test_loader->target(), rows);
  q.mode = {.training = train,
            .torch_masks = s.settings.spec.random == "torch",
            .deferred_batch_norm = s.devices.pipeline && s.devices.pipeline->deferred_batch_norm};
  q.differentiate = train;
  q.classes = s.data.train.classes;
  q.tokens = s.data.train.tokens;
  q.precision = s.precision.policy;
  q.ignores = s.data.ignores();
  q.placement = placement;
  q.recompute_stages = s.devices.pipeline &&
                       s.devices.pipeline->checkpoint != Checkpointing::never &&
                       purpose == Purpose::train && !keeps_all(s.devices, s.batches);
  return q;
}

// Reports shape errors for the batch in the spec: users would not recognize the shapes of a shard.
// If the batch has no errors, those of the shard are reported.
void complain_of_shapes(const Session& s, Diagnostics of_shard, Diagnostics& d) {
  const DataSpec& data = s.settings.spec.data;
  ModelQuery q = model_query(
      s, {}, data.batch_size.value_or(data.batch_size_per_replica.value_or(1)), Purpose::train);
  q.differentiate = q.copies = q.fuse = false;
  Diagnostics of_batch;
  build_graph(s.settings.spec, q, of_batch);
  d = of_batch.ok() ? std::move(of_shard) : std::move(of_batch);
}

std::span<const KernelType> kernels_of(const Session& s) {
  return s.devices.on_gpu() ? cuda_kernels() : cpu_kernels(s.precision.products);
}

Graph graph_for(const Session& s, const std::vector<int>& placement, int64_t rows, Purpose purpose,
                Diagnostics& d, std::vector<PassChange>* changes = nullptr) {
  ModelQuery q = model_query(s, placement, rows, purpose);
  q.passes = s.devices.on_gpu() ? gpu_passes() : cpu_passes();
  q.kernels = kernels_of(s);
  q.own_moments = (!s.settings.spec.sync_batch_norm || s.devices.topology.replicas() == 1) &&
                  !(s.devices.pipeline && s.devices.pipeline->deferred_batch_norm);
  Graph graph = build_graph(s.settings.spec, q, d, nullptr, changes);
  if (d.ok()) check_kernels(graph, q.kernels, d);
  return graph;
}

std::map<ShardGroupRows, Program> programs_for(const Session& s, const CompiledModel& model,
                                               const BatchPartitioner& batches, Purpose purpose,
                                               Diagnostics& d) {
  const bool in_flight = std::ranges::any_of(model.slots, [](int n) { return n > 1; });
  std::map<ShardGroupRows, Program> out;
  for (const ShardGroupRows& rows : batches.shard_group_rows(model.shard_groups))
    out.emplace(rows,
                compile(
                    rows, [&](int64_t n) { return graph_for(s, model.placement, n, purpose, d); },
                    kernels_of(s), model.layout, in_flight));
  return out;
}

PipelineSchedule schedule_for(const Devices& devices, const SessionBatches& batches,
                              const Graph& graph) {
  if (graph.stages() == 1) return {};
  const auto kind = devices.pipeline ? devices.pipeline->schedule : ScheduleKind::sequential;
  return pipeline_schedule(kind, graph.stage_device, static_cast<int>(batches.train->accumulate()));
}

// For each stage: the most chunks that it has in flight.
std::vector<int> slots_of(const Devices& devices, const SessionBatches& batches,
                          const Graph& graph) {
  if (graph.stages() == 1) return {1};
  // A last chunk that keeps its activations has a slot of its own.
  const bool apart = devices.pipeline && devices.pipeline->checkpoint == Checkpointing::except_last;
  const int chunks = static_cast<int>(batches.train->accumulate()) - (apart ? 1 : 0);
  const PipelineSchedule schedule = schedule_for(devices, batches, graph);
  std::vector<int> out;
  for (int stage = 0; stage < graph.stages(); ++stage)
    out.push_back(std::max(1, in_flight(schedule, stage, chunks)));
  return out;
}

// The number of chunks after which all slots repeat, at most `chunks`.
int slot_count_of(const std::vector<int>& slots, int64_t chunks) {
  int64_t out = 1;
  for (const int n : slots) out = std::lcm(out, int64_t{n});
  return static_cast<int>(std::min(out, chunks));
}

// Rounds the number of trained elements up to a multiple; the added elements are unused.
void pad_trainable(FlatLayout& layout, size_t multiple) {
  const size_t trained = layout.trainable;
  const size_t more = (trained + multiple - 1) / multiple * multiple - trained;
  for (auto* offsets : {&layout.offset, &layout.buffer_offset})
    for (size_t& at : *offsets) at += at >= trained ? more : 0;
  layout.stored += layout.stored == trained ? more : 0;
  layout.trainable += more;
  layout.total += more;
}

}  // namespace

PipelineSchedule schedule_of(const Devices& devices, const SessionBatches& batches,
                             const CompiledModel& model) {
  return schedule_for(devices, batches, model.graph);
}

namespace {

int64_t rows_of_largest_shard(const SessionBatches& batches) {
  StepRows first;
  batches.train->step(0, first);
  return shard_group_rows(first.micro[0], {0, 1}).largest;
}

CompiledModel compile_for_shards(const Session& s, Diagnostics& d) {
  CompiledModel out;
  const int64_t largest = rows_of_largest_shard(s.batches);
  if (s.devices.pipeline)
    out.placement = place_units(
        s.settings.spec, *s.devices.pipeline, s.devices.topology.devices_per_replica,
        [&](const std::vector<int>& placement) {
          ModelQuery q = model_query(s, placement, largest, Purpose::train_last);
          q.copies = q.fuse = false;
          return build_graph(s.settings.spec, q, d);
        },
        d);
  if (d.ok()) out.graph = graph_for(s, out.placement, largest, Purpose::train, d);
  if (!d.ok()) return out;
  out.slots = slots_of(s.devices, s.batches, out.graph);
  out.slot_count = slot_count_of(out.slots, s.batches.train->accumulate());
  // Gradients are stored if they must be complete before the first update (for clipping by norm,
  // and because with a scaled loss an overflow anywhere skips the update), if several are added up
  // (accumulation), if they are compressed or measured, if hosts exchange them, or if the
  // optimizer needs whole matrices.
  const bool stores = s.settings.spec.clip.max_norm.has_value() || s.precision.scaler.on ||
                      s.batches.train->accumulate() > 1 ||
                      s.devices.exchange.compress.has_value() || s.settings.measures() ||
                      s.devices.topology.hosts() > 1 || s.settings.optimizer->of_elements ||
                      s.settings.spec.reproducible_gradients == "stored";
  out.layout =
      flat_layout(out.graph, stores ? std::vector<bool>()
                                    : parameters_with_fusible_gradients(out.graph, kernels_of(s)));
  pad_trainable(out.layout, pieces_multiple(s.devices));
  out.divisor = divisor_of(s.settings.spec, out.graph);
  out.takes_empty_steps = zero_divisor_ignores_all(out.graph);
  const Shape& output = out.graph[out.graph.output].desc.shape;
  out.terms_per_sample =
      terms_per_sample(out.divisor, output, class_dim_of(s.settings.spec, output));
  for (const bool alone : {false, true}) {
    out.shard_groups = s.devices.topology.shard_groups(alone);
    out.programs = programs_for(s, out, *s.batches.train, Purpose::train, d);
    if (s.devices.pipeline && s.devices.pipeline->checkpoint == Checkpointing::except_last &&
        !keeps_all(s.devices, s.batches))
      out.last_programs = programs_for(s, out, *s.batches.train, Purpose::train_last, d);
    if (s.data.test) out.test_programs = programs_for(s, out, *s.batches.test, Purpose::test, d);
    const auto by_sample = [](const auto& p) { return p.second.by_sample(); };
    if (std::ranges::all_of(out.programs, by_sample) &&
        std::ranges::all_of(out.test_programs, by_sample))
      break;
  }
  if (!out.test_programs.empty())
    out.test_sync_points = out.test_programs.begin()->second.graph.sync_points(Part::forward);
  return out;
}

}  // namespace

CompiledModel compile_model(const Session& s, Diagnostics& d) {
  Diagnostics of_shard;
  CompiledModel out = compile_for_shards(s, of_shard);
  if (!of_shard.ok()) complain_of_shapes(s, std::move(of_shard), d);
  return out;
}

void check_kernels(const Graph& graph, std::span<const KernelType> kernels, Diagnostics& d) {
  std::set<std::string_view> known;
  for (const KernelType& k : kernels) known.insert(k.op);
  if (known.contains("")) return;  // a kernel for every operator
  for (const GraphNode& n : graph.nodes)
    if (!n.op->is(Trait::view) && known.insert(n.op->name).second)
      d.error(n.where,
              fmt::format("layer '{}' needs the operator '{}', which has no kernel for GPUs; "
                          "write `device: cpu`, or add a kernel (docs/contributing.md)",
                          n.layer, n.op->name));
}

std::vector<PassChange> pass_changes(const Session& s) {
  std::vector<PassChange> out;
  Diagnostics d;
  graph_for(s, s.model.placement, rows_of_largest_shard(s.batches), Purpose::train, d, &out);
  return out;
}

}  // namespace dpt
