// Which GPUs a session gets, and what it says where it can't have them.
#include "session/gpus.h"

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cuda/implementations/kernels.h"
#include "base/units.h"
#include "data/folder.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/executor.h"
#include "engine/gpu/gpu_specs.h"
#include "session/memory.h"
#include "session/programs.h"
#include "session/session.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

// A session of the spec on a machine with so many GPUs, or why there is none.
struct Opened {
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics diagnostics;
  std::unique_ptr<const Session> session;
  std::string error;
  int code = 0;
  explicit Opened(std::vector<std::string> words, cuda::GpuSurvey gpus = {.count = 2},
                  std::optional<int> world = {}, const char* yaml = kMlp) {
    const Folder folder;
    words.insert(words.begin(), "device=cuda");
    Spec spec = load_spec(folder.write("t.yaml", yaml), words, registries(), files, diagnostics);
    try {
      if (diagnostics.ok())
        session =
            make_session(std::move(spec), {.world = world, .gpus = std::move(gpus)}, diagnostics);
      error = diagnostics.render();
    } catch (const Error& e) {
      error = e.what();
      code = static_cast<int>(e.fault());
    }
  }
  bool says(std::string_view text) const {
    INFO(error);
    return error.find(text) != std::string::npos;
  }
};

TEST_CASE("an operator without a kernel for GPUs is refused by name") {
  const Opened o({});
  REQUIRE_MESSAGE(o.session, o.error);
  std::vector<KernelType> kernels;
  for (const KernelType& k : cuda_kernels())
    if (k.op != "tanh_gradient") kernels.push_back(k);
  Diagnostics d;
  check_kernels(o.session->model.graph, cuda_kernels(), d);
  CHECK(d.ok());
  check_kernels(o.session->model.graph, kernels, d);
  CHECK(
      d.render().find(
          "t.yaml:13:38: error: layer '6.body.1' needs the operator 'tanh_gradient', which has no "
          "kernel for GPUs; write `device: cpu`, or add a kernel (docs/contributing.md)\n") !=
      std::string::npos);
}

TEST_CASE("every GPU that is there is used, or those that are named") {
  using Gpus = std::vector<int>;
  const auto gpus = [](const std::vector<std::string>& words, std::optional<int> world = {}) {
    const Opened o(words, {.count = 3}, world);
    REQUIRE_MESSAGE(o.session, o.error);
    CHECK(o.session->devices.topology.total_workers() ==
          static_cast<int>(o.session->devices.gpu_of_worker.size()));
    return o.session->devices.gpu_of_worker;
  };
  CHECK(gpus({}) == Gpus{0});
  CHECK(gpus({"devices=[cuda:2]"}) == Gpus{2});
  CHECK(gpus({"parallel=dp"}) == Gpus{0, 1, 2});
  CHECK(gpus({"parallel=ddp", "data.batch_size=30"}) == Gpus{0, 1, 2});
  CHECK(gpus({"parallel=ddp", "devices=2"}) == Gpus{0, 1});
  CHECK(gpus({"parallel=dp", "devices=[cuda:2, cuda:0]"}) == Gpus{2, 0});
  CHECK(gpus({"parallel=dp", "devices=[cuda:1, cuda:1]"}) == Gpus{1, 1});
  CHECK(gpus({"parallel=ddp"}, 2) == Gpus{0, 1});
  CHECK(gpus({"parallel=pipeline"}) == Gpus{0, 1});
  CHECK(gpus({"parallel=pipeline", "devices=[cuda:2, cuda:1]"}) == Gpus{2, 1});
  // A launcher may show each rank its own alone.
  const Opened one({"parallel=ddp"}, {.count = 1}, 4);
  REQUIRE(one.session);
  CHECK(one.session->devices.gpu_of_worker == Gpus{0, 0, 0, 0});
  CHECK_FALSE(one.session->devices.sums_on_host());
}

TEST_CASE("who sums: NCCL, or the CPUs where replicas share a GPU or it is asked for") {
  CHECK_FALSE(Opened({"parallel=ddp"}).session->devices.sums_on_host());
  CHECK(Opened({"parallel=dp", "devices=[cuda:0, cuda:0]"}).session->devices.sums_on_host());
  CHECK(Opened({"parallel={ddp: {backend: gloo}}"}).session->devices.sums_on_host());
}

TEST_CASE("how stages that are processes copy: NCCL, or the CPUs where stages share a GPU") {
  const auto backend = [](const std::vector<std::string>& words, std::optional<int> world = {}) {
    const Opened o(words, {.count = 2}, world);
    REQUIRE_MESSAGE(o.session, o.error);
    return o.session->devices.stages_are_processes() ? o.session->devices.exchange.backend
                                                     : std::nullopt;
  };
  const std::string apart = "parallel={pipeline: {processes: true}}";
  CHECK(backend({apart}) == Exchange::Backend::nccl);
  CHECK(backend({apart, "devices=[cuda:0, cuda:0]"}) == Exchange::Backend::host);
  CHECK(backend({"parallel={pipeline: {processes: true, backend: gloo}}"}) ==
        Exchange::Backend::host);
  CHECK(backend({"parallel=pipeline"}, 2) == Exchange::Backend::nccl);
  CHECK_FALSE(backend({"parallel=pipeline"}));
}

TEST_CASE("GPUs that can't be had end in one sentence") {
  const Opened more({"parallel=ddp", "devices=4"});
  CHECK(more.code == static_cast<int>(Fault::device));
  CHECK(more.error ==
        "the run needs 4 GPUs, but CUDA finds 2 GPUs; use `devices: 2`, or, for a test, put "
        "several replicas on one GPU: `devices: [cuda:0, cuda:0]`");
  CHECK(Opened({"parallel=dp", "devices=[cuda:0, cuda:2]"}).error ==
        "device cuda:2 does not exist: CUDA finds 2 GPUs, numbered from 0");
  const Opened none({"parallel=ddp"}, {.problem = "there is no driver"});
  CHECK(none.code == static_cast<int>(Fault::device));
  CHECK(none.says("device 'cuda' cannot be used: there is no driver. Set `device: cpu`"));
  const Opened nccl({"parallel=ddp"}, {.count = 2, .nccl_problem = "libnccl.so.2 is nowhere"});
  CHECK(nccl.code == static_cast<int>(Fault::device));
  CHECK(nccl.error ==
        "summing gradients across GPUs needs NCCL, which cannot be loaded: libnccl.so.2 is "
        "nowhere. Install "
        "it, or set `backend: gloo`, which uses the CPUs");
  const Opened stages({"parallel={pipeline: {processes: true}}"},
                      {.count = 2, .nccl_problem = "libnccl.so.2 is nowhere"});
  CHECK(stages.error ==
        "copying between GPUs of different processes needs NCCL, which cannot be loaded: "
        "libnccl.so.2 is nowhere. "
        "Install it, or set `backend: gloo`, which uses the CPUs");
  for (const char* mode : {"{ddp: {backend: gloo}}", "{pipeline: {processes: true, backend: gloo}}",
                           "{pipeline: {stages: 2}}"})
    CHECK(Opened({fmt::format("parallel={}", mode)}, {.count = 2, .nccl_problem = "none"}).session);
}

TEST_CASE("settings that GPUs do not have are refused with the reason") {
  const auto refused = [](const std::vector<std::string>& words, const char* yaml = kMlp) {
    const Opened o(words, {.count = 2}, {}, yaml);
    CHECK_FALSE(o.session);
    return o.error;
  };
  const auto has = [](const std::string& text, std::string_view part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(has(refused({"parallel={ddp: {backend: nccl}}", "devices=[cuda:0, cuda:0]"}),
            "NCCL allows one replica per GPU, but a GPU is listed twice"));
  CHECK(has(refused({"parallel={ddp: {backend: gloo, bucket_cap_mb: 5}}"}),
            "`bucket_cap_mb` applies only to NCCL"));
  CHECK(has(refused({"parallel={pipeline: {processes: true, backend: nccl}}",
                     "devices=[cuda:0, cuda:0]"}),
            "NCCL allows one stage per GPU, but a GPU is listed twice"));
  CHECK(has(refused({"parallel=ddp", "reproducible={shards: 4}"}), "write `shards: 2`"));
  CHECK(has(refused({"parallel=ddp", "reproducible={shards: 2}"}),
            "NCCL chooses its own order of summation"));
  CHECK(has(refused({"parallel={ddp: {backend: gloo}}", "sync_batch_norm=true"}, kImages),
            "`sync_batch_norm` on GPUs needs NCCL"));
  for (const char* words : {"parallel={ddp: {backend: nccl}}", "parallel={dp: {bucket_cap_mb: 5}}"})
    CHECK(has(refused({words, "device=cpu"}), "are for GPUs"));
}

TEST_CASE("buckets are whole parameters in backward's order, the first one small") {
  const Opened o({"parallel=ddp"});
  REQUIRE(o.session);
  const Session& s = *o.session;
  const GpuShare& all = s.shares.gpus[0];
  for (const double mib : {0.0005, 0.001, 0.002, 25.0}) {
    const std::vector<Bucket> buckets = gradient_buckets(s.devices, s.model, all, mib);
    CHECK(buckets.front().begin == 0);
    CHECK(buckets.back().end == s.model.layout.stored);
    for (size_t b = 0; b + 1 < buckets.size(); ++b) {
      CHECK(buckets[b].end == buckets[b + 1].begin);
      CHECK(static_cast<double>((buckets[b].end - buckets[b].begin) * 4) >= mib * kMiB);
    }
    for (const auto& [rows, program] : s.model.programs) {
      const std::vector<size_t> made = made_after(program, buckets);
      CHECK(std::ranges::is_sorted(made));
      CHECK(made.back() < program.backward.size());
      // Nothing of a bucket is made later.
      for (size_t i = 0; i < program.backward.size(); ++i)
        for (const ValueId v : program.graph.nodes[program.backward[i].node].out)
          if (const Location& location = program.location[static_cast<size_t>(v)];
              location.arena == Arena::gradients)
            for (size_t b = 0; b < buckets.size(); ++b)
              if (buckets[b].begin * 4 <= location.offset && location.offset < buckets[b].end * 4)
                CHECK(i <= made[b]);
    }
  }
  CHECK(gradient_buckets(s.devices, s.model, all, 25).size() == 1);
  CHECK(gradient_buckets(s.devices, s.model, all, 0.001).size() > 3);
}

TEST_CASE("what `memory_limit` is held against is what a GPU takes") {
  for (const char* mode : {"ddp", "{ddp: {shard: optimizer}}", "{ddp: {compress: fp16}}"})
    for (const char* chunks : {"accumulate=1", "accumulate=2"}) {
      const std::string parallel = fmt::format("parallel={}", mode);
      CAPTURE(parallel);
      CAPTURE(chunks);
      const Opened opened({parallel, "devices=2", chunks});
      REQUIRE_MESSAGE(opened.session, opened.error);
      const Session& s = *opened.session;
      const GpuExecutor::Needs needs = GpuExecutor::needs(s);
      const DeviceUse use = device_uses(s)[0];
      // Parameters begin at cache lines, and pieces are equal.
      const double lost = 64.0 * static_cast<double>(s.model.graph.parameters.size() + 2);
      CHECK(std::abs(use.gradients - static_cast<double>(needs.gradients)) <= 3 * lost);
      CHECK(std::abs(use.states - static_cast<double>(needs.states)) <= s.settings.states() * lost);
      CHECK(use.states > 4 * lost);
    }
}

TEST_CASE("`shard: optimizer` cuts each bucket into equal pieces, one for each GPU") {
  for (const char* size : {"0.001", "0.003", "25"})
    for (const int gpus : {2, 3}) {
      CAPTURE(size);
      const Opened o(
          {fmt::format("parallel={{ddp: {{shard: optimizer, bucket_cap_mb: {}}}}}", size),
           "data.batch_size=30"},
          {.count = gpus});
      REQUIRE_MESSAGE(o.session, o.error);
      const Session& s = *o.session;
      CHECK(s.model.layout.stored == s.model.layout.trainable);
      const GpuShare& share = s.shares.gpus[0];
      const std::vector<Bucket> buckets = gradient_buckets(s.devices, s.model, share);
      size_t at = 0, all = 0;
      for (const Bucket& b : buckets) {
        CHECK(b.begin == at);
        CHECK(b.count() % static_cast<size_t>(16 * gpus) == 0);
        for (int g = 0; g < gpus; ++g) {
          const Bucket piece = own_piece(s.devices, b, g);
          CHECK(piece.begin == at);
          at = piece.end;
        }
        CHECK(at == b.end);
      }
      CHECK(at == s.model.layout.stored);
      for (int g = 0; g < gpus; ++g)
        for (const Bucket& piece : own_pieces(s.devices, s.model, share, g)) all += piece.count();
      CHECK(all == s.model.layout.trainable);
      // A gradient that lies in two buckets is made before either is sent.
      for (const auto& [rows, program] : s.model.programs) {
        const std::vector<size_t> made = made_after(program, buckets);
        CHECK(std::ranges::is_sorted(made));
        for (size_t i = 0; i < program.backward.size(); ++i)
          for (const ValueId v : program.graph.nodes[program.backward[i].node].out)
            if (const Location& location = program.location[static_cast<size_t>(v)];
                location.arena == Arena::gradients)
              for (size_t b = 0; b < buckets.size(); ++b)
                if (location.offset < buckets[b].end * 4 &&
                    buckets[b].begin * 4 < location.offset + program.graph[v].desc.bytes())
                  CHECK(i <= made[b]);
      }
    }
}

}  // namespace
}  // namespace dpt
