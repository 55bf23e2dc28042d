#include "engine/cpu/nonfinite_search.h"

#include "engine/cpu/host_exchange.h"

namespace dpt {
namespace {

std::vector<Rows> own_shards(const CpuWorker& worker) {
  std::vector<Rows> out;
  for (const int g : worker.own) out.push_back(worker.shards(g));
  return out;
}

}  // namespace

CpuNonFiniteSearch::CpuNonFiniteSearch(CpuWorker& worker, const BindingTable& bindings,
                                       SyncPoints& sync_points, CpuBatchInput& input)
    : NonFiniteSearch(worker.session, worker.buffers, worker.stages, own_shards(worker)),
      worker_(worker),
      bindings_(bindings),
      sync_points_(sync_points),
      input_(input) {}

void CpuNonFiniteSearch::load(const StepInput& input, size_t micro) {
  for (const int g : worker_.own)
    if (Binding* b = bindings_.find(g, input.rows->micro[micro], ProgramKind::train))
      input_.load(*b, g, input, micro, true);
}

void CpuNonFiniteSearch::run_stage(const StepInput& input, size_t micro, int stage) {
  const MicroBatch& rows = input.rows->micro[micro];
  const auto look = [&](int group, Binding& b, const Binding::Piece& piece) {
    if (const int64_t at = b.run_until_not_finite(piece); at >= 0)
      record(worker_.shards(group).begin, micro, at);
  };
  const int count = session_.model.graph.sync_points(Part::forward, stage);
  if (count > 0)
    return sync_points_.each_piece(count, {.part = Part::forward, .micro = rows, .stage = stage},
                                   look);
  for (const int g : worker_.own)
    if (Binding* b = bindings_.find(g, rows, ProgramKind::train))
      look(g, *b, {.part = Part::forward, .stage = stage, .piece = 0});
}

void CpuNonFiniteSearch::gather() {
  worker_.among_hosts([](HostExchange& e) { e.results().gather_non_finite(); });
}

// The next stage, or the next sum, of another worker follows.
void CpuNonFiniteSearch::pass_on(const StepInput&, size_t, int stage) {
  const bool sums =
      session_.model.graph.sync_points(Part::forward, stage) > 0 && sync_points_.waits();
  if (stages_.last() > 0 || sums) barrier();
}

}  // namespace dpt
