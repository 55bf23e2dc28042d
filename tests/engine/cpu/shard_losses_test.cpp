// Loading a batch, its loss, and the sums over shards.
#include "engine/cpu/shard_losses.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "engine/cpu/dropout_masks.h"
#include "engine/cpu/one_worker.h"
#include "engine/cpu/sync_points.h"

namespace dpt {
namespace {

TEST_CASE("a batch is loaded, and zero weights make the loss log 10") {
  OneWorker one(kTinySpec);
  const BindingTable bindings(one.worker);
  CpuBatchInput input(one.worker, *one.session->data.loader, nullptr);
  ShardLosses losses(one.worker, bindings, input);
  const auto step = one.step(2);  // 4 samples
  Binding* const b = bindings.find(0, step->rows.micro[0], ProgramKind::train);
  input.load(*b, 0, step->input, 0);
  CHECK(b->context.first_sample == 0);
  CHECK(b->first);
  const auto* const targets = reinterpret_cast<const int32_t*>(b->target());
  int32_t expected[4] = {};
  one.session->data.loader->targets(std::vector<uint32_t>{16, 17, 18, 19}, expected);
  CHECK(std::equal(targets, targets + 4, expected));

  losses.begin_step(step->rows.samples);
  CHECK(losses.divisor() == 4);
  b->run(Part::forward);
  losses.run(0, 0, step->input);
  const StepSums sums = losses.sums(0);
  CHECK(sums.loss == doctest::Approx(std::log(10)));
  CHECK(sums.divisor == 4);
}

TEST_CASE("if the targets determine the divisor, it is the sum of their weights") {
  OneWorker one(kTinySpec,
                {"loss={cross_entropy: {weight: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]}}", "accumulate=2"});
  const BindingTable bindings(one.worker);
  CpuBatchInput input(one.worker, *one.session->data.loader, nullptr);
  ShardLosses losses(one.worker, bindings, input);
  const auto step = one.step(0);
  losses.begin_step(8);
  losses.prologue(0, 0, step->input);
  losses.prologue(0, 1, step->input);
  losses.sum_divisor(0);
  CHECK(losses.divisor() == 16);
}

TEST_CASE("sums are of the step's own results, and of rank 0's shards") {
  OneWorker one(kTinySpec, {"parallel=ddp", "devices=2", "log.loss=rank0"});
  const BindingTable bindings(one.worker);
  const CpuBatchInput input(one.worker, *one.session->data.loader, nullptr);
  ShardLosses losses(one.worker, bindings, input);
  one.buffers.result(4, 0) = {.loss = 1, .weight = 4};
  one.buffers.result(4, 1) = {.loss = 2, .weight = 3};
  one.buffers.result(5, 0) = one.buffers.result(5, 1) = {.loss = 100, .weight = 100};
  losses.begin_step(7);
  const StepSums sums = losses.sums(4);
  CHECK(sums.loss == 3);
  CHECK(sums.divisor == 7);
  CHECK(sums.rank0_loss == 1);
  CHECK(sums.rank0_divisor == 4);
}

TEST_CASE("masks are drawn for the rows of the batch, with the probability of the layer") {
  OneWorker one(kTinySpec,
                {"model=[flatten, {linear: 40}, {dropout: 0.5}, {linear: 10}]", "random=torch"});
  const BindingTable bindings(one.worker);
  Generator generator(0);
  DropoutMasks masks(*one.session, bindings.arenas(), generator);
  const auto step = one.step(0);
  masks.draw(step->rows.micro[0], 0);
  const Binding* const b = bindings.find(0, step->rows.micro[0], ProgramKind::train);
  for (ValueId v = 0; v < static_cast<ValueId>(one.session->model.graph.values.size()); ++v)
    if (one.session->model.graph[v].role == Role::mask) {
      const auto mask = b->view(v).as<float>();
      const auto kept = std::ranges::count(mask, 1.0F);
      CHECK(mask.size() == 320);
      CHECK(kept + std::ranges::count(mask, 0.0F) == 320);
      CHECK(kept > 120);
      CHECK(kept < 200);
    }
}

TEST_CASE("pieces of a part run between sums over shards") {
  OneWorker one(kTinySpec,
                {"model=[flatten, {linear: 10}, batch_norm1d]", "reproducible={shards: 2}"});
  const BindingTable bindings(one.worker);
  CpuBatchInput input(one.worker, *one.session->data.loader, nullptr);
  SyncPoints sync_points(one.worker, bindings);
  CHECK_FALSE(sync_points.waits());  // one worker has both shards
  const auto step = one.step(0);
  const MicroBatch& micro = step->rows.micro[0];
  for (const int g : one.worker.own)
    input.load(*bindings.find(g, micro, ProgramKind::train), g, step->input, 0);
  const int count = one.session->plan.forward_sync_points;
  REQUIRE(count > 0);
  std::vector<int> pieces;
  sync_points.each_piece(count, {.part = Part::forward, .micro = micro},
                         [&](int, Binding& b, const Binding::Piece& piece) {
                           b.run(piece);
                           pieces.push_back(piece.piece);
                         });
  CHECK(pieces.size() == one.worker.own.size() * static_cast<size_t>(count + 1));
  CHECK(std::ranges::is_sorted(pieces));  // no group begins a piece before all have ended the last
}

}  // namespace
}  // namespace dpt
