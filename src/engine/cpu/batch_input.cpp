// What a shard group's memory receives before its programs run: samples and targets, the kernels'
// step context, and dropout masks drawn in PyTorch's order.
#include <algorithm>

#include "base/fail.h"
#include "engine/cpu/executor.h"
#include "graph/attrs.h"
#include "graph/operator.h"

namespace dpt {

void Executor::load_inputs(const BatchLoader& loader, std::span<const uint32_t> rows,
                           uint64_t epoch, const std::byte* staged, Binding& b) const {
  if (loader.input().dtype == DType::i32)
    loader.inputs(rows, reinterpret_cast<int32_t*>(b.input()));
  else
    loader.inputs(rows, reinterpret_cast<float*>(b.input()),
                  {static_cast<uint64_t>(session_.spec.seed), epoch}, staged);
}

void Executor::load_targets(const BatchLoader& loader, std::span<const uint32_t> rows, Binding& b) {
  if (loader.target().dtype == DType::i32)
    loader.targets(rows, reinterpret_cast<int32_t*>(b.target()));
  else
    loader.targets(rows, reinterpret_cast<float*>(b.target()));
}

// The sample numbers of a shard group. Its shards are adjacent in `order`.
std::span<const uint32_t> Executor::samples(int group, const Micro& micro,
                                            std::span<const uint32_t> order) const {
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  const int64_t begin = micro[static_cast<size_t>(shards.begin)].rows.begin;
  const int64_t end = micro[static_cast<size_t>(shards.end - 1)].rows.end;
  return order.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

Binding* Executor::load(int group, const StepInput& input, int micro, int kind,
                        PrefetchStream* prefetch) {
  Binding* b = binding(group, input.rows->micro[static_cast<size_t>(micro)], kind, micro);
  if (!b) return nullptr;
  set_context(*b, group, input, micro);
  if (has_stage(0)) load_first(*b, group, input, micro, prefetch);
  if (has_stage(last_stage())) load_last(*b, group, input, micro);
  return b;
}

void Executor::set_context(Binding& b, int group, const StepInput& input, int micro) {
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  const auto first = static_cast<size_t>(session_.shard_groups[static_cast<size_t>(group)].begin);
  b.context = {.seed = static_cast<uint64_t>(session_.spec.seed),
               .step = input.number,
               .first_sample = rows[first].first_sample,
               .last_chunk = session_.last_chunk(*input.rows, static_cast<size_t>(micro))};
  b.first = rows[first].first_sample == rows[0].first_sample;
}

void Executor::load_first(Binding& b, int group, const StepInput& input, int micro,
                          PrefetchStream* prefetch) {
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  wait_clock_.record(WaitClock::data, [&] {
    const BatchLease lease(prefetch, input.batch, micro,
                           session_.shard_groups[static_cast<size_t>(group)], team_);
    load_inputs(*session_.loader, samples(group, rows, input.order), input.epoch, lease.bytes(), b);
  });
}

void Executor::load_last(Binding& b, int group, const StepInput& input, int micro) {
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  load_targets(*session_.loader, samples(group, rows, input.order), b);
}

namespace {

// Visits all elements of a tensor [samples, ...] with its dimensions nested as `order` says,
// outermost first. Calls f(sample, offset of the element in the sample).
template <class F>
void visit(const Shape& shape, std::span<const int> order, F&& f, int64_t sample = 0,
           int64_t offset = 0) {
  if (order.empty()) return f(sample, offset);
  const int extent = order.front();
  const int64_t step = extent == 0 ? 0 : shape.tail(extent + 1).elements();
  for (int64_t i = 0; i < shape[extent]; ++i)
    visit(shape, order.subspan(1), f, extent == 0 ? i : sample, offset + i * step);
}

const Masked& settings_of_mask(const Graph& graph, ValueId mask) {
  for (const GraphNode& n : graph.nodes) {
    if (std::ranges::find(n.in, mask) == n.in.end()) continue;
    if (const auto* masked = std::any_cast<Masked>(&n.attrs)) return *masked;
    // The mask is first converted to another layout or type.
    return settings_of_mask(graph, n.out[0]);
  }
  fail(Fault::failed, "no operator takes {}", graph[mask].name);
}

}  // namespace

// Draws the masks in the order in which PyTorch consumes its generator: layer by layer, each mask
// for the whole batch and in the order of PyTorch's memory layout.
void Executor::draw_masks(int micro, const StepInput& input) {
  const std::vector<ShardRows>& shards = input.rows->micro[static_cast<size_t>(micro)];
  for (ValueId v = 0; v < static_cast<ValueId>(session_.graph.values.size()); ++v) {
    if (session_.graph[v].role != Role::mask) continue;
    const Shape& any = session_.graph[v].desc.shape;
    mask_rows_.clear();
    for (size_t g = 0; g < session_.shard_groups.size(); ++g) {
      const ShardGroupRows rows = shard_group_rows(shards, session_.shard_groups[g]);
      if (rows.total() == 0) continue;
      const Location& location = session_.programs.at(rows).location[static_cast<size_t>(v)];
      auto* mask = reinterpret_cast<float*>(
          arenas_.kept(static_cast<int>(g), location.stage, micro) + location.offset);
      for (int64_t n = 0; n < rows.total(); ++n)
        mask_rows_.push_back(mask + n * any.tail(1).elements());
    }
    const double keep = session_.graph[v].probability;
    visit(any.with(0, static_cast<int64_t>(mask_rows_.size())),
          settings_of_mask(session_.graph, v).order, [&](int64_t sample, int64_t offset) {
            mask_rows_[static_cast<size_t>(sample)][offset] = masks_->bernoulli(keep) ? 1.0F : 0.0F;
          });
  }
}

}  // namespace dpt
