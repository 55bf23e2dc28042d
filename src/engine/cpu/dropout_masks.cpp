#include "engine/cpu/dropout_masks.h"

#include <algorithm>
#include <any>
#include <span>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/operator.h"

namespace dpt {
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

void DropoutMasks::draw(const MicroBatch& micro, int chunk) {
  for (ValueId v = 0; v < static_cast<ValueId>(session_.model.graph.values.size()); ++v) {
    if (session_.model.graph[v].role != Role::mask) continue;
    const Shape& any = session_.model.graph[v].desc.shape;
    rows_.clear();
    for (size_t g = 0; g < session_.model.shard_groups.size(); ++g) {
      const ShardGroupRows rows = shard_group_rows(micro, session_.model.shard_groups[g]);
      if (rows.total() == 0) continue;
      const Location& location = session_.model.programs.at(rows).location[static_cast<size_t>(v)];
      auto* mask = reinterpret_cast<float*>(
          arenas_.kept(static_cast<int>(g), location.stage, chunk) + location.offset);
      for (int64_t n = 0; n < rows.total(); ++n) rows_.push_back(mask + n * any.tail(1).elements());
    }
    const double keep = session_.model.graph[v].origin->probability;
    visit(any.with(0, static_cast<int64_t>(rows_.size())),
          settings_of_mask(session_.model.graph, v).order, [&](int64_t sample, int64_t offset) {
            rows_[static_cast<size_t>(sample)][offset] = generator_.bernoulli(keep) ? 1.0F : 0.0F;
          });
  }
}

}  // namespace dpt
