// Which binding a GPU's rows use, and what is enqueued for the loss.
#include "engine/gpu/binding_table.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "engine/gpu/gpu_specs.h"
#include "engine/gpu/losses.h"
#include "engine/gpu/one_gpu.h"
#include "engine/gpu/parts.h"
#include "engine/gpu/replica_weights.h"

namespace dpt {
namespace {

MicroBatch rows(int64_t count) { return {{.rows = {0, count}}}; }

TEST_CASE("a GPU's binding has its rows and the kind's program") {
  OneGpu one(kMlp, {"accumulate=2"});  // micro-batches of 16, 16, ..., 10, 9
  const GpuBindingTable table(one.worker, one.update, nullptr);
  GpuBinding* const first = table.find(rows(16), ProgramKind::train);
  REQUIRE(first);
  CHECK(first->program().rows.total() == 16);
  CHECK(table.find(rows(16), ProgramKind::train_more, 1) != first);
  CHECK(table.find(rows(10), ProgramKind::test)->program().rows.total() == 10);
  CHECK(table.find(rows(0), ProgramKind::train) == nullptr);
  CHECK_THROWS_WITH_AS(table.at(rows(3), ProgramKind::train), "no program for 3 samples", Error);
  const StepRows step{.samples = 32, .micro = {rows(16), rows(16)}};
  CHECK(table.of_step(step, 0) == first);
  CHECK(table.of_step(step, 1) == table.find(rows(16), ProgramKind::train_more));
  // Gradients of later micro-batches are computed apart.
  CHECK(table.memory(ProgramKind::train, 0).gradients !=
        table.memory(ProgramKind::train_more, 0).gradients);
  CHECK(table.memory(ProgramKind::train_more, 0).gradients ==
        table.memory(ProgramKind::train_last, 0).gradients);
}

TEST_CASE("parts run instruction by instruction, and without rows nothing runs") {
  OneGpu one(kMlp);
  const GpuBindingTable table(one.worker, one.update, nullptr);
  GpuBinding* const b = table.find(rows(32), ProgramKind::train);
  GpuParts parts(one.worker, nullptr);
  CHECK(&parts.program_of(b) == &b->program());
  CHECK(&parts.program_of(nullptr) == &one.session->model.programs.begin()->second);
  const int64_t before = one.api.calls();
  parts.run(Part::forward, nullptr, 0, b->instructions(Part::forward));
  CHECK(one.api.calls() == before);
  parts.run(Part::forward, b, 0, b->instructions(Part::forward));
  CHECK(one.api.calls() > before);
}

TEST_CASE("a step's only loss stays in place; others are kept") {
  for (const bool several : {false, true}) {
    OneGpu one(kMlp, {several ? "accumulate=2" : "accumulate=1"});
    const GpuBindingTable table(one.worker, one.update, nullptr);
    GpuLosses losses(one.worker, table, one.update, one.launch_queue, nullptr, nullptr);
    const int64_t count = several ? 16 : 32;
    GpuBinding* const b = table.find(rows(count), ProgramKind::train);
    REQUIRE(b);
    const StepRows step{.samples = count, .micro = {rows(count)}};
    const std::byte* const loss = losses.run(step, 0, b);
    CHECK(loss == (several ? nullptr : b->view(b->program().graph.loss).data));
    CHECK(losses.terms_of(Quantity::divisor).count == (several ? 2 : 1));
    CHECK(losses.terms_of(Quantity::gradients).count == 0);
  }
}

TEST_CASE("replicas' weights go to the host's buffers") {
  OneGpu one(kMlp);
  one.buffers.weights()[3] = 1.5F;
  one.update.upload(one.buffers);
  one.buffers.weights()[3] = 0;
  ReplicaWeights(one.worker, one.update).gather();
  CHECK(one.buffers.weights()[3] == 1.5F);
}

TEST_CASE("data that the GPU saw out of range is an error of the data") {
  check_data(0);
  CHECK_THROWS_WITH_AS(check_data(1), doctest::Contains("out of the model's range"), Error);
}

}  // namespace
}  // namespace dpt
