#include "session/programs.h"

#include <algorithm>
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
  std::vector<int64_t> extents = {rows};
  extents.insert(extents.end(), sample.shape.extents().begin(), sample.shape.extents().end());
  return {sample.dtype, Shape(extents)};
}

// Whether no chunk is recomputed because the only chunk is also the last.
bool keeps_all(const Session& s) {
  return s.pipeline->checkpoint == Checkpointing::except_last && s.batches->accumulate() == 1;
}

// What a program is for. train_last: a last chunk that keeps its activations.
enum class Purpose { train, train_last, test };

ModelQuery model_query(const Session& s, int64_t rows, Purpose purpose) {
  const bool train = purpose != Purpose::test;
  ModelQuery q;
  q.input = batch_of(s.loader->input(), rows);
  q.target = batch_of(s.loader->target(), rows);
  q.mode = {.training = train,
            .torch_masks = s.spec.random == "torch",
            .deferred_batch_norm = s.pipeline && s.pipeline->deferred_batch_norm};
  q.differentiate = train;
  q.classes = s.train.classes;
  q.tokens = s.train.tokens;
  q.precision = s.precision;
  q.ignores = s.ignores();
  q.placement = s.placement;
  q.recompute_stages = s.pipeline && s.pipeline->checkpoint != Checkpointing::never &&
                       purpose == Purpose::train && !keeps_all(s);
  return q;
}

// Reports shape errors for the batch in the spec: users would not recognize the shapes of a shard.
// If the batch has no errors, those of the shard are reported.
void complain_of_shapes(const Session& s, Diagnostics of_shard, Diagnostics& d) {
  const DataSpec& data = s.spec.data;
  ModelQuery q = model_query(s, data.batch_size.value_or(data.batch_size_per_replica.value_or(1)),
                             Purpose::train);
  q.placement.clear();
  q.differentiate = q.copies = q.fuse = false;
  Diagnostics of_batch;
  build_graph(s.spec, q, of_batch);
  d = of_batch.ok() ? std::move(of_shard) : std::move(of_batch);
}

std::span<const KernelType> kernels_of(const Session& s) {
  return s.on_gpu() ? cuda_kernels() : cpu_kernels();
}

Graph graph_for(const Session& s, int64_t rows, Purpose purpose, Diagnostics& d,
                std::vector<PassChange>* changes = nullptr) {
  ModelQuery q = model_query(s, rows, purpose);
  q.passes = s.on_gpu() ? gpu_passes() : cpu_passes();
  q.kernels = kernels_of(s);
  q.own_moments = (!s.spec.sync_batch_norm || s.topology.replicas() == 1) &&
                  !(s.pipeline && s.pipeline->deferred_batch_norm);
  Graph graph = build_graph(s.spec, q, d, nullptr, changes);
  if (d.ok()) check_kernels(graph, q.kernels, d);
  return graph;
}

std::map<ShardGroupRows, Program> programs_for(const Session& s, const BatchPartitioner& batches,
                                               Purpose purpose, Diagnostics& d) {
  const bool in_flight = std::ranges::any_of(s.slots, [](int n) { return n > 1; });
  std::map<ShardGroupRows, Program> out;
  for (const ShardGroupRows& rows : batches.shard_group_rows(s.shard_groups))
    out.emplace(rows, compile(
                          rows, [&](int64_t n) { return graph_for(s, n, purpose, d); },
                          kernels_of(s), s.layout, in_flight));
  return out;
}

// For each stage: the most chunks that it has in flight.
std::vector<int> slots_of(const Session& s) {
  if (s.graph.stages() == 1) return {1};
  // A last chunk that keeps its activations has a slot of its own.
  const bool apart = s.pipeline && s.pipeline->checkpoint == Checkpointing::except_last;
  const int chunks = static_cast<int>(s.batches->accumulate()) - (apart ? 1 : 0);
  const PipelineSchedule schedule = schedule_of(s);
  std::vector<int> out;
  for (int stage = 0; stage < s.graph.stages(); ++stage)
    out.push_back(std::max(1, in_flight(schedule, stage, chunks)));
  return out;
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

PipelineSchedule schedule_of(const Session& s) {
  if (s.graph.stages() == 1) return {};
  const auto kind = s.pipeline ? s.pipeline->schedule : ScheduleKind::sequential;
  return pipeline_schedule(kind, s.graph.stage_device, static_cast<int>(s.batches->accumulate()));
}

namespace {

int64_t rows_of_largest_shard(const Session& s) {
  StepRows first;
  s.batches->step(0, first);
  return shard_group_rows(first.micro[0], {0, 1}).largest;
}

void make_programs_of_shards(Session& s, Diagnostics& d) {
  const int64_t largest = rows_of_largest_shard(s);
  if (s.pipeline)
    s.placement = place_units(
        s.spec, *s.pipeline, s.topology.devices_per_replica,
        [&](const std::vector<int>& placement) {
          ModelQuery q = model_query(s, largest, Purpose::train_last);
          q.placement = placement;
          q.copies = q.fuse = false;
          return build_graph(s.spec, q, d);
        },
        d);
  if (d.ok()) s.graph = graph_for(s, largest, Purpose::train, d);
  if (!d.ok()) return;
  s.slots = slots_of(s);
  // Gradients are stored if they must be complete before the first update (for clipping by norm,
  // and because with a scaled loss an overflow anywhere skips the update), if several are added up
  // (accumulation), or if they are compressed or measured.
  const bool stores = s.spec.clip.max_norm.has_value() || s.scaler.on ||
                      s.batches->accumulate() > 1 || s.exchange.compress.has_value() ||
                      s.measures();
  s.layout =
      flat_layout(s.graph, stores ? std::vector<bool>()
                                  : parameters_with_fusible_gradients(s.graph, kernels_of(s)));
  pad_trainable(s.layout, pieces_multiple(s));
  s.divisor = divisor_of(s.spec, s.graph);
  s.takes_empty_steps = zero_divisor_ignores_all(s.graph);
  const Shape& output = s.graph[s.graph.output].desc.shape;
  s.terms_per_sample = terms_per_sample(s.divisor, output, class_dim_of(s.spec, output));
  for (const bool alone : {false, true}) {
    s.shard_groups = s.topology.shard_groups(alone);
    s.programs = programs_for(s, *s.batches, Purpose::train, d);
    if (s.pipeline && s.pipeline->checkpoint == Checkpointing::except_last && !keeps_all(s))
      s.last_programs = programs_for(s, *s.batches, Purpose::train_last, d);
    if (s.test) s.test_programs = programs_for(s, *s.test_batches, Purpose::test, d);
    const auto by_sample = [](const auto& p) { return p.second.by_sample(); };
    if (std::ranges::all_of(s.programs, by_sample) &&
        std::ranges::all_of(s.test_programs, by_sample))
      return;
  }
}

}  // namespace

void make_programs(Session& s, Diagnostics& d) {
  Diagnostics of_shard;
  make_programs_of_shards(s, of_shard);
  if (!of_shard.ok()) complain_of_shapes(s, std::move(of_shard), d);
}

void check_kernels(const Graph& graph, std::span<const KernelType> kernels, Diagnostics& d) {
  std::set<std::string_view> known;
  for (const KernelType& k : kernels) known.insert(k.op);
  if (known.contains("")) return;  // a kernel for every operator
  for (const GraphNode& n : graph.nodes)
    if (!n.op->view && known.insert(n.op->name).second)
      d.error(n.where,
              fmt::format("layer '{}' needs the operator '{}', which has no kernel for GPUs; "
                          "write `device: cpu`, or add a kernel (docs/contributing.md)",
                          n.layer, n.op->name));
}

std::vector<PassChange> pass_changes(const Session& s) {
  std::vector<PassChange> out;
  Diagnostics d;
  graph_for(s, rows_of_largest_shard(s), Purpose::train, d, &out);
  return out;
}

}  // namespace dpt
