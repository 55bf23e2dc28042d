// The memory that `dptrain plan` prints for each device is what a run allocates there, and the
// largest batch that fits is the largest.
#include "describe/device_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include "backend/cuda/fake_api.h"
#include "backend/cuda/fake_world.h"
#include "engine/gpu/batch_input.h"
#include "engine/gpu/team.h"
#include "engine/own_states.h"
#include "sanitizers.h"
#include "session/later_gradients.h"
#include "session/memory.h"
#include "session/update_partition.h"
#include "skip.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using Words = std::vector<std::string>;

// Of the prediction. The rest is what a run needs beside its tensors, such as counters.
constexpr double kTolerance = 0.05;

// Large enough that what every run needs, such as cache lines between buffers, does not count.
constexpr const char* kWide = R"(
data:
  dataset: {synthetic_images: {samples: 600, shape: [1, 12, 12]}}
  transforms: [to_tensor]
  batch_size: 240
model: [flatten, {linear: 300}, relu, {dropout: 0.3}, {linear: 200}, layer_norm, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
steps: 1
evaluate: false
)";

constexpr const char* kConvolutions = R"(
data:
  dataset: {synthetic_images: {samples: 96, shape: [3, 16, 16]}}
  transforms: [to_tensor]
  batch_size: 48
model:
  - {conv2d: {out_channels: 16, kernel_size: 3, padding: 1}}
  - batch_norm2d
  - relu
  - {residual: {body: [{conv2d: {out_channels: 16, kernel_size: 3, padding: 1}}, relu]}}
  - {max_pool2d: 2}
  - flatten
  - {linear: 10}
loss: cross_entropy
optimizer: {sgd: {lr: 0.05, momentum: 0.9}}
steps: 1
evaluate: false
)";

// Several bytes that processes share.
struct Allocated {
  std::atomic<size_t> now, most;
};

class CountingGpu : public cuda::FakeApi {
 public:
  CountingGpu(const Settings& settings, Allocated& allocated)
      : cuda::FakeApi(settings), allocated_(allocated) {}
  std::byte* allocate(cuda::MemoryKind kind, size_t bytes) override {
    std::byte* const out = FakeApi::allocate(kind, bytes);
    if (kind == cuda::MemoryKind::device) {
      const size_t now = allocated_.now += bytes;
      allocated_.most = std::max<size_t>(allocated_.most, now);
    }
    return out;
  }

 private:
  Allocated& allocated_;
};

void check_gpus(const std::string& yaml, Words how) {
  CAPTURE(fmt::format("{}", fmt::join(how, " ")));
  how.emplace_back("device=cuda");
  using All = std::array<Allocated, 4>;
  void* const memory =
      mmap(nullptr, sizeof(All), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  All& all = *new (memory) All{};
  {
    cuda::FakeWorld world;
    const Ran ran = run_spec(yaml, how, [&](int index) {
      return std::make_unique<CountingGpu>(cuda::FakeApi::Settings{.index = index, .world = &world},
                                           all.at(static_cast<size_t>(index)));
    });
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
  }
  const auto s = session_of(yaml, how, true);
  const std::vector<double> estimate = device_memory(*s);
  for (int g = 0; g < s->devices.topology.total_workers(); ++g) {
    CAPTURE(g);
    const double expected = estimate[static_cast<size_t>(s->devices.topology.device_of(g))];
    const auto most = static_cast<double>(all.at(static_cast<size_t>(g)).most);
    // The data set, which GPUs hold if their memory allows it, is printed by itself.
    const double data = static_cast<double>(resident_bytes(*s->data.loader));
    INFO(most, " bytes were allocated, ", data, " of them for data, ", expected, " were predicted");
    CHECK(std::abs(most - data - expected) <= kTolerance * expected);
  }
  munmap(memory, sizeof(All));
}

TEST_CASE("GPUs allocate what the plan says") {
  for (const char* yaml : {kWide, kConvolutions}) {
    if (kSanitized && yaml == kWide) continue;
    check_gpus(yaml, {"parallel=single"});
    check_gpus(yaml, {"parallel=single", "accumulate=2"});
    check_gpus(yaml, {"parallel={dp: {loss: distributed}}", "devices=2"});
    check_gpus(yaml, {"parallel={pipeline: {stages: 2, chunks: 4}}"});
    if (!kCanFork) continue;
    check_gpus(yaml, {"parallel=ddp", "devices=2"});
    check_gpus(yaml, {"parallel={ddp: {shard: optimizer, compress: fp16}}", "devices=2"});
    check_gpus(yaml, {"parallel={pipeline: {stages: 2, chunks: 4, processes: true}}"});
  }
}

// The memory of all workers: one mapping, their own states, and the gradients of later
// micro-batches. Not the rows of fused gradients that a worker makes at a time, at most 256 KiB for
// each.
double allocated_by_workers(const Session& s) {
  auto out = static_cast<double>(Buffers::bytes(s.layout.buffers));
  if (s.devices.own_states())
    for (const auto& share : partition_update(s.model.programs.begin()->second, s.model.layout,
                                              s.batches.global_batch, s.devices.topology))
      out += static_cast<double>(sizeof(float) * OwnStates::elements(share)) * s.settings.states();
  for (int w = 0; w < s.devices.topology.total_workers() && s.batches.train->accumulate() > 1;
       ++w) {
    size_t later = 0;
    for (const auto* programs : {&s.model.programs, &s.model.last_programs})
      for (const auto& [rows, program] : *programs)
        later = std::max(later, later_bytes(program, [&](int stage) {
                           return s.model.graph.stage_device[static_cast<size_t>(stage)] ==
                                  s.devices.topology.device_of(w);
                         }));
    out += static_cast<double>(later);
  }
  return out;
}

void check_workers(const std::string& yaml, const Words& how) {
  CAPTURE(fmt::format("{}", fmt::join(how, " ")));
  const auto s = session_of(yaml, how);
  double expected = 0, total = 0;
  for (const DeviceUse& use : device_uses(*s)) {
    // Replicas of a machine share weights and states.
    expected += use.weights + use.states +
                s->devices.topology.replicas() * (use.gradients + use.activations);
    total += use.total();
  }
  double by_device = 0;
  for (const double bytes : device_memory(*s)) by_device += bytes;
  CHECK(by_device == total);
  const double allocated = allocated_by_workers(*s);
  INFO(allocated, " bytes are allocated, ", expected, " were predicted");
  CHECK(std::abs(allocated - expected) <= kTolerance * expected);
}

TEST_CASE("CPU workers allocate what the plan says") {
  for (const char* yaml : {kWide, kConvolutions})
    for (const char* more : {"seed=1", "clip_grad_norm=1", "accumulate=3"})
      for (const Words& how : std::vector<Words>{
               {"parallel=single", "cores=1"},
               {"parallel=single", "cores=3"},
               {"parallel=dp", "devices=2", "cores=1"},
               {"parallel=ddp", "devices=2", "cores=2"},
               {"parallel={ddp: {shard: optimizer, compress: bf16}}", "devices=3", "cores=1"},
               {"parallel={pipeline: {stages: 2, chunks: 4}}", "cores=1"},
               {"parallel={pipeline: {stages: 2, chunks: 4, checkpoint: always, data_parallel: 2}}",
                "cores=1"}}) {
        Words words = how;
        words.emplace_back(more);
        check_workers(yaml, words);
      }
}

TEST_CASE("the largest batch that fits: one unit more does not") {
  for (const Words& how :
       std::vector<Words>{{"parallel=single", "cores=1"},
                          {"parallel=ddp", "devices=3", "cores=1", "accumulate=2"},
                          {"parallel={pipeline: {stages: 2, chunks: 4}}", "cores=1"}}) {
    CAPTURE(fmt::format("{}", fmt::join(how, " ")));
    const auto of = [&](int64_t batch) {
      Words words = how;
      words.push_back(fmt::format("data.batch_size={}", batch));
      return session_of(kWide, words);
    };
    const auto most_of = [&](int64_t batch) { return std::ranges::max(device_memory(*of(batch))); };
    const int64_t unit = of(60)->devices.topology.replicas() * of(60)->settings.spec.accumulate;
    const double bytes = most_of(120 + unit) - 1;
    const BatchFit fit = fit_batch(bytes, unit, 600, of);
    CHECK(fit.batch % unit == 0);
    CHECK(fit.batch >= 120);
    CHECK(std::ranges::max(fit.memory) <= bytes);
    CHECK(fit.next == fit.batch + unit);
    CHECK(std::ranges::max(fit.next_memory) > bytes);
    CHECK(std::ranges::max(fit.memory) == most_of(fit.batch));
    CHECK(fit_batch(1e12, unit, 600, of).batch == 600);
    CHECK(fit_batch(1e12, unit, 600, of).next == 0);
    CHECK(fit_batch(1, unit, 600, of).batch == 0);
    CHECK(fit_batch(1, unit, 600, of).next == unit);
  }
}

}  // namespace
}  // namespace dpt
