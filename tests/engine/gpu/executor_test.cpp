// Training on the fake GPU: the CPU's numbers, the same calls in every step, nothing left behind.
#include "engine/gpu/executor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/folder.h"
#include "engine/gpu/fake_gpu.h"
#include "engine/gpu/gpu_specs.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

Ran compare(const std::string& yaml, const std::vector<std::string>& how = {},
            double tolerance = kSameNumbers, const cuda::FakeApi::Settings& settings = {}) {
  CAPTURE(fmt::format("{}", fmt::join(how, " ")));
  std::vector<std::string> on_cpu = how, on_gpu = how;
  on_cpu.insert(on_cpu.end(), {"device=cpu", "cores=1"});
  on_gpu.emplace_back("device=cuda");
  Told told;
  Ran ran = run_spec(yaml, on_gpu, fake_gpu(told, settings));
  agree(ran, run_spec(yaml, on_cpu), tolerance);
  CHECK(told.leaks == "");
  return ran;
}

TEST_CASE("a GPU trains to the CPU's numbers: layers, optimizers, uneven batches, evaluation") {
  compare(kMlp);
  compare(kMlp, {"optimizer={sgd: {lr: 0.1, momentum: 0.9}}", "seed=4"});
  compare(kMlp, {"optimizer={rms_prop: 0.01}", "clip_grad_norm=0.5"});
  compare(kMlp, {"optimizer={adagrad: 0.05}", "clip_grad_norm={max_norm: 0.1, norm_type: .inf}"});
  compare(kMlp, {"optimizer={adadelta: 1}", "clip_grad_value=0.01"});
  compare(kMlp, {"optimizer={adamax: 0.01}"});
  compare(kMlp, {"optimizer={n_adam: {lr: 0.01, weight_decay: 0.1}}", "clip_grad_norm=0.5"});
  compare(kMlp, {"optimizer={r_adam: {lr: 0.01, decoupled_weight_decay: true}}"});
  compare(kMlp, {"optimizer={rprop: {lr: 0.001, step_sizes: [1e-5, 0.01]}}"});
  compare(kMlp, {"optimizer={asgd: {lr: 0.1, t0: 2, weight_decay: 0.1, average: true}}"});
  compare(kMlp, {"optimizer={lion: {lr: 0.001, weight_decay: 0.1}}"});
  compare(kMlp, {"accumulate=3"});
  compare(kMlp, {"schedule={step: {step_size: 1, gamma: 0.5}}"});
  // What the loss divides by is the sum of the targets' weights, known before the first gradient.
  compare(kMlp, {"loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
}

TEST_CASE("a GPU trains parameter groups to the CPU's numbers, also while steps are unsure") {
  std::vector<std::string> how = kGroups;
  how.emplace_back("optimizer={adam_w: {lr: 0.01, weight_decay: 0.1}}");
  const Ran ran = compare(kMlp, how);
  CHECK(ran.err.find("tensors with lr 0.02, weight_decay 0;") != std::string::npos);
  how.emplace_back("accumulate=2");
  compare(kMlp, how);
  how.back() = "optimizer={sgd: {lr: 0.1, momentum: 0.9, weight_decay: 0.1, nesterov: true}}";
  compare(kMlp, how);
  // Some steps are skipped, so formulas of several updates are sent for each step.
  how.emplace_back("precision={fp16: {lists: cuda, emulate: true, init_scale: 67108864}}");
  compare(kMlp, how, 0.02);
}

// Each step takes the rate of the one before it, which may belong to the epoch before.
TEST_CASE("a GPU gives asgd the CPU's rates, also while steps are unsure") {
  std::vector<std::string> how = {"optimizer={asgd: {lr: 0.5, lambd: 0.1}}",
                                  "schedule={exponential: 0.1}"};
  compare(kMlp, how);
  how.back() = "schedule={exponential: 0.5, interval: step}";
  compare(kMlp, how);
  how.emplace_back("precision={fp16: {lists: cuda, emulate: true, init_scale: 67108864}}");
  compare(kMlp, how, 0.02);
}

TEST_CASE("a GPU freezes single parameters: the CPU's numbers") {
  for (const char* freeze : {"freeze=[bias]", "freeze=[norm]", "freeze=['*.weight']",
                             "freeze=[0.weight, 1.bias, 3.body.4.weight, 9.bias]"})
    compare(kImages, {freeze});
  for (const char* freeze : {"freeze=[norm, bias]", "freeze=['*.weight']",
                             "freeze=[0, 1.body.1.in_proj_weight, 3.out_proj.bias]"})
    compare(kAttention, {freeze});
}

TEST_CASE("a GPU trains convolutions, batch norm and residuals to the CPU's numbers") {
  compare(kImages);
  compare(kImages, {"accumulate=2"});
  compare(kImages,
          {"data.transforms=[{random_crop: {padding: 3}}, to_tensor]", "data.sampler=weighted"});
}

TEST_CASE("a GPU trains a transformer to the CPU's numbers, by own kernels and by cuDNN's") {
  compare(kAttention);
  // A rounding that falls the other way is one in 256.
  const std::string halves = "precision={bf16: {lists: cuda, emulate: true}}";
  for (const bool libraries : {true, false})
    compare(kAttention, {halves}, 0.02, {.libraries = libraries});
}

TEST_CASE(
    "a GPU trains products with relu to the CPU's numbers, also where its libraries lack them") {
  using cuda::Epilogue;
  const std::string halves = "precision={bf16: {lists: cuda, emulate: true}}";
  const cuda::FakeApi::Settings cases[] = {
      {},
      {.epilogues = false},
      {.lacking = {Epilogue::relu_gradient}},
      {.lacking = {Epilogue::relu_mask, Epilogue::bias_relu_mask}},
      {.lacking = {Epilogue::relu_mask}}};  // that of the layer without a bias
  for (const cuda::FakeApi::Settings& settings : cases) {
    CHECK(compare(kRelu, {}, kSameNumbers, settings).err.find("not as planned: ") ==
          std::string::npos);
    // A rounding that falls the other way is one in 256.
    if (settings.lacking.empty()) compare(kRelu, {halves}, 0.02, settings);
  }
}

TEST_CASE("norms of own kernels in the libraries' place train to the CPU's numbers") {
  for (const auto* yaml : {kMlp, kImages}) {
    const std::string err = compare(yaml, {"epochs=1", "data.limit=16", "data.batch_size=4"},
                                    kSameNumbers, {.libraries = false})
                                .err;
    CHECK(err.find("dptrain's own kernels compute it\n") != std::string::npos);
  }
}

TEST_CASE("threads make the plans of a model before its first step") {
  setenv("DPTRAIN_PLAN_THREADS", "2", 1);
  Told told;
  const Ran ran = run_spec(kImages, {"device=cuda", "epochs=1"}, fake_gpu(told, {.planners = 2}));
  unsetenv("DPTRAIN_PLAN_THREADS");
  CHECK(ran.code == 0);
  CHECK(ran.err.find("make plans") == std::string::npos);
  CHECK(told.leaks == "");
}

TEST_CASE("what an own kernel computes in a library's place is said in a sentence") {
  Told told;
  const Ran ran = run_spec(kRelu, {"device=cuda"}, fake_gpu(told, {.libraries = false}));
  CHECK(ran.code == 0);
  CHECK(ran.err.find(
            "not as planned: the fake GPU has no libraries; dptrain's own kernel computes it, far "
            "slower\n") != std::string::npos);
}

TEST_CASE("the kernels that replace a library's are counted") {
  Told told;
  const std::string counts = " of this GPU's programs are dptrain's own instead of a library's; ";
  const Ran none = run_spec(kRelu, {"device=cuda"}, fake_gpu(told));
  CHECK(none.err.find(counts) == std::string::npos);
  const Ran all = run_spec(kRelu, {"device=cuda"}, fake_gpu(told, {.libraries = false}));
  const size_t at = all.err.find(counts);
  REQUIRE(at != std::string::npos);
  const size_t line = all.err.rfind('\n', at) + 1;
  CAPTURE(all.err.substr(line, at - line));
  int kernels = 0;
  REQUIRE(std::sscanf(all.err.c_str() + line, "not as planned: %d kernels", &kernels) == 1);
  CHECK(kernels > 3);  // each linear layer has a product and two gradients
}

TEST_CASE("DPTRAIN_LOG_PLANS names the algorithm of every operation") {
  const Folder folder;
  const std::string file = folder.file("plans");
  const auto logged = [&](bool libraries) {
    std::remove(file.c_str());
    setenv("DPTRAIN_LOG_PLANS", file.c_str(), 1);
    Told told;
    const Ran ran = run_spec(kRelu, {"device=cuda"}, fake_gpu(told, {.libraries = libraries}));
    unsetenv("DPTRAIN_LOG_PLANS");
    CHECK(ran.code == 0);
    return read_file(file);
  };
  const std::string planned = logged(true), refused = logged(false);
  CAPTURE(planned);
  CHECK(planned.find(
            "plan\tcuda:0\t[16, 19] = [16, 54] x [54, 19] + bias, relu, mask in f32, f32\t") !=
        std::string::npos);
  CHECK(planned.find("\tlinear_relu\tcublaslt\tplain loops\n") != std::string::npos);
  CHECK(planned.find("\town\t-\n") != std::string::npos);
  CHECK(planned.find("refused") == std::string::npos);
  CAPTURE(refused);
  CHECK(refused.find("\tcublaslt\trefused: the fake GPU has no libraries") != std::string::npos);
  // An operation of several programs is listed once.
  std::set<std::string> nodes;
  std::istringstream lines(planned);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("node\t")) CHECK_MESSAGE(nodes.insert(line).second, line);
  CHECK(nodes.size() > 10);
}

TEST_CASE("a file of DPTRAIN_LOG_PLANS that cannot be written ends the run") {
  setenv("DPTRAIN_LOG_PLANS", "/nowhere/plans", 1);
  Told told;
  const Ran ran = run_spec(kRelu, {"device=cuda"}, fake_gpu(told));
  unsetenv("DPTRAIN_LOG_PLANS");
  CHECK(ran.code == 1);
  CHECK(ran.err.find("DPTRAIN_LOG_PLANS: /nowhere/plans cannot be written: No such file") !=
        std::string::npos);
}

TEST_CASE("a GPU trains in halves, with the scaler, to the CPU's numbers rounded the same way") {
  // A rounding that falls the other way is one in 256 of a bf16, one in 2048 of an f16.
  const std::string lists = "lists: cuda, emulate: true";
  compare(kMlp, {fmt::format("precision={{bf16: {{{}}}}}", lists)}, 0.02);
  compare(kMlp, {fmt::format("precision={{fp16: {{{}}}}}", lists)}, 0.004);
  // So large that the first steps overflow, and it shrinks.
  compare(kMlp, {fmt::format("precision={{fp16: {{{}, init_scale: 67108864}}}}", lists)}, 0.004);
  compare(kImages, {fmt::format("precision={{bf16: {{{}}}}}", lists)}, 0.02);
}

TEST_CASE("the order of a GPU's threads changes no bit") {
  Told told;
  const Ran forward = run_spec(kMlp, {"device=cuda"}, fake_gpu(told));
  for (const auto order : {cuda::ThreadOrder::reverse, cuda::ThreadOrder::shuffled}) {
    const Ran other = run_spec(kMlp, {"device=cuda"}, fake_gpu(told, {.order = order}));
    CHECK(!other.weights.empty());
    CHECK(other.weights == forward.weights);
  }
}

TEST_CASE("a call of the GPU that fails ends the run with its error and leaves nothing behind") {
  Told told;
  const std::vector<std::string> small = {"device=cuda", "epochs=1", "evaluate=false"};
  REQUIRE(run_spec(kMlp, small, fake_gpu(told)).code == 0);
  const int64_t calls = told.count;
  for (int64_t n = 0; n < calls; n += 1 + calls / 40) {
    CAPTURE(n);
    const Ran failed = run_spec(kMlp, small, fake_gpu(told, {.fail_call = n}));
    const bool expected = failed.code == static_cast<int>(Fault::device) ||
                          failed.code == static_cast<int>(Fault::memory);
    CHECK(expected);
    CHECK(failed.err.find(fmt::format("call {} of the fake GPU", n)) != std::string::npos);
    CHECK(failed.weights.empty());
    CHECK(told.leaks == "");
  }
}

TEST_CASE("a loss that is no number ends the run with the layer") {
  Told told;
  const std::vector<std::string> wild = {"optimizer={sgd: 1e30}", "evaluate=false"};
  std::vector<std::string> on_gpu = wild, on_cpu = wild;
  on_gpu.emplace_back("device=cuda");
  on_cpu.insert(on_cpu.end(), {"device=cpu", "cores=1"});
  const Ran gpu = run_spec(kMlp, on_gpu, fake_gpu(told)), cpu = run_spec(kMlp, on_cpu);
  CHECK(gpu.code == cpu.code);
  const auto message = [](const std::string& err) { return err.substr(err.find("dptrain: ")); };
  CHECK(message(gpu.err) == message(cpu.err));
  CHECK(told.leaks == "");
}

TEST_CASE("a batch of one sample has no variance on a GPU either") {
  Told told;
  const Ran ran = run_spec(kMlp,
                           {"device=cuda", "data.batch_size=41",
                            "model=[flatten, {linear: 8}, batch_norm1d, {linear: 10}]"},
                           fake_gpu(told));
  CHECK(ran.code == 2);
  CHECK(ran.err.find("batch 3 of 3 leaves a replica with a single sample") != std::string::npos);
}

TEST_CASE("what a GPU does not do is said before anything is loaded") {
  Told told;
  const auto err = [&](const std::string& what) {
    const Ran ran = run_spec(kMlp, {"device=cuda", what}, fake_gpu(told));
    CHECK(ran.code == 2);
    return ran.err;
  };
  CHECK(err("reproducible={shards: 2}").find("on GPUs each replica has exactly one shard") !=
        std::string::npos);
  CHECK(err("random=torch").find("draws dropout masks on the CPU") != std::string::npos);
}

}  // namespace
}  // namespace dpt
