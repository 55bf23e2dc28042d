// `ema`, and `average` of asgd, on fake GPUs: the averages of CPUs, checkpoints, and what is
// refused there.
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/resumed_run.h"
#include "engine/gpu/fake_fleet.h"
#include "engine/gpu/gpu_specs.h"
#include "formats/safetensors.h"
#include "train/metrics_file.h"

namespace dpt {
namespace {

using cuda::FakeApi;

std::vector<double> test_losses(const Ran& ran) {
  std::vector<double> out;
  std::istringstream in(ran.metrics);
  for (std::string line; std::getline(in, line);)
    if (const auto loss = number_at(*record_of(line), "test.loss")) out.push_back(*loss);
  return out;
}

Ran on_gpus(const Words& how, RunIn where) {
  Quick quick;
  where.disk = &quick;
  Fleet gpus;
  const Ran out = run_spec_in(where, kImages, with({"device=cuda", "ema=0.8"}, how), gpus.opener());
  CHECK_MESSAGE(out.code == 0, out.err);
  CHECK(gpus.leaks() == "");
  return out;
}

TEST_CASE("a GPU evaluates and saves the averages that a CPU does" * doctest::skip(!kCanFork)) {
  for (const Words& how :
       std::vector<Words>{{},
                          {"parallel=ddp", "devices=2"},
                          {"parallel={ddp: {shard: optimizer}}", "devices=2"},
                          {"parallel={ddp: {shard: optimizer, backend: gloo}}", "devices=2"},
                          {"parallel=dp", "devices=2"},
                          {"parallel={pipeline: {stages: 2, chunks: 2}}"}}) {
    CAPTURE(fmt::format("{}", fmt::join(how, " ")));
    const Folder one, two;
    const Ran gpu = on_gpus(with(how, {"save=false"}), {one.path()});
    if (how.empty()) {
      const Folder three;
      same(gpu, on_gpus({"save=false", "graphs=false"}, {three.path()}));
    }
    const Ran cpu = run_spec_in({.folder = two.path()}, kImages,
                                with(how, {"device=cpu", "cores=1", "ema=0.8", "save=false"}));
    agree(gpu, cpu, kSameNumbers);
    const auto a = test_losses(gpu), b = test_losses(cpu);
    REQUIRE(a.size() == 2);
    REQUIRE(b.size() == 2);
    for (size_t i = 0; i < a.size(); ++i)
      CHECK(std::abs(a[i] - b[i]) <= kSameNumbers * std::abs(b[i]));
    const SafeTensors saved = SafeTensors::read(one.file("run/model.safetensors")),
                      other = SafeTensors::read(two.file("run/model.safetensors"));
    REQUIRE(saved.entries().size() == other.entries().size());
    for (const auto& e : saved.entries()) {
      const auto* const o = other.find(e.name);
      REQUIRE(o);
      if (e.desc.dtype != DType::f32) continue;
      const auto* const x = reinterpret_cast<const float*>(e.data);
      const auto* const y = reinterpret_cast<const float*>(o->data);
      for (int64_t i = 0; i < e.desc.shape.elements(); ++i)
        CHECK(std::abs(x[i] - y[i]) <= 1e-4F);  // kSameNumbers of numbers up to 5
    }
  }
}

const Words kAsgd = {"optimizer={asgd: {lr: 0.05, t0: 2, average: true}}"};

TEST_CASE("a GPU evaluates and saves the averages of asgd that a CPU does") {
  Fleet gpus;
  const Ran gpu = run_spec(kImages, with(kAsgd, {"device=cuda"}), gpus.opener());
  const Ran cpu = run_spec(kImages, with(kAsgd, {"device=cpu", "cores=1"}));
  agree(gpu, cpu, kSameNumbers);
  const auto a = test_losses(gpu), b = test_losses(cpu);
  REQUIRE(a.size() == 2);
  REQUIRE(b.size() == 2);
  for (size_t i = 0; i < a.size(); ++i)
    CHECK(std::abs(a[i] - b[i]) <= kSameNumbers * std::abs(b[i]));
  const Ran plain = run_spec(kImages, {"device=cpu", "cores=1", "optimizer={asgd: 0.05}"});
  CHECK(test_losses(plain) != b);
}

TEST_CASE("a model in halves has averages of asgd in halves on a GPU") {
  const Folder folder;
  Fleet gpus;
  const Ran ran = run_spec_in(
      {folder.path()}, kImages,
      with(kAsgd, {"device=cuda", "save=false", "precision={bf16: {level: o3}}"}), gpus.opener());
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const SafeTensors saved = SafeTensors::read(folder.file("run/model.safetensors"));
  int seen = 0;
  for (const auto& e : saved.entries()) {
    if (!e.name.ends_with(".weight")) continue;
    ++seen;
    const auto* const x = reinterpret_cast<const uint32_t*>(e.data);
    for (int64_t i = 0; i < e.desc.shape.elements(); ++i) CHECK((x[i] & 0xFFFFU) == 0);
  }
  CHECK(seen > 3);
}

TEST_CASE("a GPU's run goes on with its averages" * doctest::skip(!kCanFork)) {
  for (const Words& how : std::vector<Words>{
           {},
           {"parallel={ddp: {shard: optimizer, bucket_cap_mb: 0.0001}}", "devices=2"},
           {"parallel={pipeline: {stages: 2, chunks: 2}}"}}) {
    CAPTURE(fmt::format("{}", fmt::join(how, " ")));
    const Folder one, two;
    const Ran whole = on_gpus(with(how, {"save={every_steps: 1, keep: 100}"}), {one.path()});
    const Ran rest = on_gpus(with(how, {"save=false"}), {two.path(), checkpoint(one, 3)});
    same(whole, rest);
    CHECK(test_losses(whole) == test_losses(rest));
  }
}

TEST_CASE("gradients are measured on CPUs only") {
  for (const char* key : {"grad_norms", "noise_scale"}) {
    CAPTURE(key);
    Fleet gpus;
    const Ran ran = run_spec(
        kImages, {"device=cuda", fmt::format("log={{every: 1, {}: true}}", key)}, gpus.opener());
    CHECK(ran.code == 2);
    CHECK_MESSAGE(
        ran.err.find(fmt::format("log.{} is measured on CPUs only", key)) != std::string::npos,
        ran.err);
  }
}

}  // namespace
}  // namespace dpt
