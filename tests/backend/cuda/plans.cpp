// Whether cuDNN has a plan for all that the shipped specs ask of it as they stand, on four
// generations of GPUs, in every precision, and for some other norms, pools and attention: `plans
// RUNTIME DRIVER GOLDEN CONFIGS`. It is what their kernels ask for while they are prepared: of
// every program, so of training and evaluation, of full and of smaller last batches. No GPU is
// needed, and nothing is run: that a plan exists is all that is shown. Plans that were saved, as in
// the user's plan cache, are restored: of all convolutions, and one of each kind of norm, pooling
// and attention. RUNTIME stands in for the CUDA runtime (no_device.cpp), DRIVER for libcuda.so.1
// (no_driver.cpp); CONFIGS is the folder of specs. DPT_REWRITE_GOLDEN=1 writes GOLDEN anew; of
// another version of cuDNN only the existence of plans is checked. Exit code 77: there is no cuDNN.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <tuple>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/cuda/fake_api.h"
#include "backend/cuda/interface/context.h"
#include "backend/cuda/module/dnn_plan.h"
#include "base/error.h"
#include "base/fail.h"
#include "base/half.h"
#include "cli/spec_argument.h"
#include "data/dataset.h"
#include "graph/program/program.h"

namespace dpt::cuda {
namespace {

struct Gpu {
  const char* name;
  int compute, multiprocessors, most_shared, threads, blocks;
  int64_t clock, memory_clock, cache, memory;  // kHz, kHz, bytes, bytes
};
// From NVIDIA's published specifications.
constexpr Gpu kGpus[] = {
    {"NVIDIA A100", 800, 108, 166912, 2048, 32, 1410000, 1593000, 41943040, 85000000000},
    {"NVIDIA H200", 900, 132, 232448, 2048, 32, 1980000, 3201000, 62914560, 150000000000},
    {"NVIDIA B200", 1000, 148, 232448, 2048, 32, 1965000, 3996000, 132644864, 190000000000},
    {"RTX 5090", 1200, 170, 101376, 1536, 24, 2407000, 14001000, 100663296, 34000000000}};

// As cuDNN serialises the properties of a device; it wants all of these.
std::string properties_of(const Gpu& g) {
  return fmt::format(
      R"({{"deviceVer":{},"driverVer":13000,"cudaDeviceId":0,"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":{},"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":{},"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)"
      R"("smClockRateKHz":{},"memClockRateKHz":{},"l2CacheSize":{},"deviceName":"{}",)"
      R"("totalGlobalMem":{},"maxCtasPerSM":{}}})",
      g.compute, g.multiprocessors, g.most_shared, g.threads, g.clock, g.memory_clock, g.cache,
      g.name, g.memory, g.blocks);
}

std::string text_of(const DnnConvolution& c) {
  constexpr const char* passes[] = {"forward", "input gradient", "weight gradient"};
  const Window& w = c.window;
  return fmt::format("{} {}{}{} x {} w {} stride {} padding {}{}{}",
                     c.tf32 ? "tf32" : name_of(c.in), passes[static_cast<size_t>(c.pass)],
                     c.bias ? " + bias" : "", c.relu ? ", relu" : "", c.x.str(), c.w.str(),
                     w.stride[1], w.before[1], w.behind != w.before ? " before" : "",
                     c.groups > 1 ? fmt::format(" groups {}", c.groups) : "");
}

std::string text_of(const DnnNorm& n) {
  const bool back = n.pass == DnnPass::backward;
  return fmt::format("{} {}{}{}{}{} x {}", name_of(n.type), name_of(n.kind), back ? " back" : "",
                     n.add ? back ? ", dr" : " + r" : "", n.relu ? ", relu" : "",
                     n.sum ? ", two dy" : "", n.x.str());
}

std::string text_of(const DnnPool& p) {
  const Window& w = p.window;
  return fmt::format("{} {}{} x {} window {} {} stride {} padding {}{}", name_of(p.type),
                     name_of(p.kind), p.pass == DnnPass::backward ? " back" : "", p.x.str(),
                     w.kernel[1], w.kernel[2], w.stride[1], w.before[1],
                     w.behind != w.before ? fmt::format(" and {}", w.behind[1]) : "");
}

std::string text_of(const DnnAttention& a) {
  return fmt::format("{} attention{}{} x {} samples, {} positions, {} heads, {} columns",
                     name_of(a.type), a.pass == DnnPass::backward ? " back" : "",
                     a.causal ? ", causal" : "", a.samples, a.positions, a.heads, a.columns);
}

// Notes what is asked of cuDNN, each once, and the spec that asks first.
class Recorder final : public FakeApi {
 public:
  template <class Description>
  using Asked = std::vector<std::pair<std::string, Description>>;
  std::tuple<Asked<DnnConvolution>, Asked<DnnNorm>, Asked<DnnPool>, Asked<DnnAttention>> asked;
  std::string spec;
  int64_t questions = 0;

  using FakeApi::prepare;
  // As module/device.cpp, which widens a result that cuDNN stores in halves alone.
  std::unique_ptr<DeviceWork> prepare(const DnnConvolution& d) override {
    DnnConvolution narrow = d;
    narrow.out = d.in;
    return note(narrow);
  }
  std::unique_ptr<DeviceWork> prepare(const DnnNorm& d) override { return note(d); }
  std::unique_ptr<DeviceWork> prepare(const DnnPool& d) override { return note(d); }
  std::unique_ptr<DeviceWork> prepare(const DnnAttention& d) override { return note(d); }

 private:
  template <class Description>
  std::unique_ptr<DeviceWork> note(const Description& d) {
    ++questions;
    auto& all = std::get<Asked<Description>>(asked);
    if (std::ranges::find(all, d, &std::pair<std::string, Description>::second) == all.end())
      all.emplace_back(spec, d);
    return FakeApi::prepare(d);
  }
};

void ask(Recorder& gpu, const Program& program, bool tf32) {
  const auto stream = gpu.make_stream();
  for (const Part part : {Part::prologue, Part::forward, Part::loss, Part::backward, Part::update})
    for (const Instruction& i : program.part(part)) {
      if (i.kernel->name != "cudnn") continue;
      const int64_t before = gpu.questions;
      DeviceContext context(gpu, *stream, nullptr);
      context.tf32 = tf32;
      const DeviceContext::Use use(context);
      prepare(i, query_of(program.graph, i.node, program.rows));
      require(gpu.questions > before, "a row that is called cudnn asks cuDNN");
    }
}

void ask(Recorder& gpu, const std::string& path) {
  gpu.spec = std::filesystem::path(path).filename().string();
  for (const char* precision : {"fp32", "tf32", "fp16", "bf16"}) {
    SpecArgument argument{
        path, {"device=cuda", "memory_limit=1e6", fmt::format("precision={}", precision)}};
    // Shapes are wanted, not files, which may be missing.
    const Choice data = load(argument).spec.data.dataset;
    if (const auto stand_in = static_cast<const DatasetType*>(data.what)->stand_in)
      argument.overrides.push_back(fmt::format("data.dataset={}", stand_in(data.settings)));
    const auto session = open_session(load(argument), {.runs = false, .gpus = GpuSurvey{}});
    for (const auto* programs :
         {&session->model.programs, &session->model.last_programs, &session->model.test_programs})
      for (const auto& [rows, program] : *programs) ask(gpu, program, session->precision.tf32);
  }
}

// What no spec asks for, in a type: pooling of all kinds whose padding differs at every side,
// attention of narrow and wide heads, layer and instance norms.
void ask_others(Recorder& gpu, DType type) {
  for (const DnnPass pass : {DnnPass::forward, DnnPass::backward}) {
    gpu.spec = "other pooling";
    for (const PoolKind kind : {PoolKind::max, PoolKind::mean, PoolKind::mean_with_padding})
      gpu.prepare(DnnPool{
          kind,
          pass,
          {2, 5, 9, 7},
          {2, 5, 5, 3},
          {.kernel = {1, 3, 3}, .stride = {1, 2, 2}, .before = {0, 0, 1}, .behind = {0, 2, 0}},
          type});
    gpu.spec = "other norms";
    for (const Shape& x : {Shape{512, 768, 1, 1}, Shape{17, 33, 1, 1}, Shape{1, 10, 1, 1}})
      gpu.prepare(DnnNorm{.kind = NormKind::layer, .pass = pass, .x = x, .type = type});
    for (const Shape& x : {Shape{16, 64, 28, 28}, Shape{2, 6, 5, 5}, Shape{3, 4, 1, 9}})
      gpu.prepare(DnnNorm{.kind = NormKind::instance, .pass = pass, .x = x, .type = type});
    if (!is_half(type)) continue;
    gpu.spec = "other attention";
    for (const bool causal : {false, true}) {
      for (const int64_t columns : {8, 24, 64, 72, 128})
        gpu.prepare(DnnAttention{pass, 3, 67, 2, columns, causal, type});
      gpu.prepare(DnnAttention{pass, 12, 1024, 12, 64, causal, type});
      gpu.prepare(DnnAttention{pass, 5, 2, 1, 16, causal, type});
    }
  }
}

using SetDevice = void(int compute, int multiprocessors);

// plan: called with the properties of each GPU; throws where one has no plan.
template <class Plan>
void on_each_gpu(SetDevice* set_device, Plan plan) {
  for (const Gpu& gpu : kGpus) {
    set_device(gpu.compute, gpu.multiprocessors);
    try {
      plan(properties_of(gpu));
    } catch (Error& e) {
      e.during(fmt::format("planning for {}", gpu.name));
      throw;
    }
  }
}

// A plan that was saved, as PlanCache keeps it, is the same plan: of the same engine and settings.
template <class Description>
void check_saved(const std::string& gpu, const Description& d, const DnnPlan& plan) {
  const std::string saved = plan.saved();
  require(!plan.from_cache() && !saved.empty(), "a plan can be saved");
  const auto restored = Dnn::instance().restore_without_device(gpu, d, saved);
  require(restored->from_cache(), "a restored plan is known as one");
  require(restored->name() == plan.name() && restored->workspace_bytes() == plan.workspace_bytes(),
          "a restored plan is the one that was saved");
  // Behind this word is a set, which the front end writes in any order.
  const auto ordered = [](const std::string& text) {
    return text.substr(0, text.find("variant_pack_uids"));
  };
  const std::string again = restored->saved();
  require(again.size() == saved.size() && ordered(again) == ordered(saved),
          "a restored plan is saved as the first one was");
}

// What a file may hold that is no plan ends in an Error, which makes a new plan. The cache's hash
// finds changed bytes before cuDNN's front end does, which would end the process by an assertion.
void check_damaged(const std::string& gpu, const DnnConvolution& c, const DnnPlan& plan) {
  const std::string saved = plan.saved();
  require(saved.find("cudnn_backend_data") != std::string::npos,
          "a saved plan has cuDNN's own text");
  for (const std::string& damaged : {std::string(), std::string("name"), std::string("name\n"),
                                     saved.substr(0, saved.size() / 2)})
    try {
      Dnn::instance().restore_without_device(gpu, c, damaged);
      fail(Fault::failed, "a damaged plan was taken");
    } catch (const Error& e) {
      require(e.fault() == Fault::device, e.what());
    }
}

// Bytes of workspace on each GPU.
std::string plans_of(const DnnConvolution& c, SetDevice* set_device) {
  std::string out;
  on_each_gpu(set_device, [&](const std::string& gpu) {
    const auto plan = Dnn::instance().plan_without_device(gpu, c);
    check_saved(gpu, c, *plan);
    static const bool once = (check_damaged(gpu, c, *plan), true);
    require(once, "damaged plans were tried");
    out += fmt::format(" {}", plan->workspace_bytes());
  });
  return out;
}

// Kernels of norms, pooling and attention are compiled when their plan is made, which takes half a
// second, so it is only asked whether they would be. check_restored() makes a few.
template <class Description>
std::string plans_of(const Description& d, SetDevice* set_device) {
  on_each_gpu(set_device,
              [&](const std::string& gpu) { Dnn::instance().check_without_device(gpu, d); });
  return " compiled when it runs";
}

std::string kind_of(const DnnNorm& n) { return std::string(name_of(n.kind)); }
std::string kind_of(const DnnPool& p) { return std::string(name_of(p.kind)); }
std::string kind_of(const DnnAttention& a) { return a.causal ? "causal" : ""; }

// Makes and restores the first plan of each kind, forward and backward, for an H200.
template <class Description>
void check_restored(const Recorder& gpu, SetDevice* set_device) {
  const Gpu& h200 = kGpus[1];
  set_device(h200.compute, h200.multiprocessors);
  std::set<std::pair<std::string, DnnPass>> seen;
  for (const auto& [spec, d] : std::get<Recorder::Asked<Description>>(gpu.asked)) try {
      if (!seen.emplace(kind_of(d), d.pass).second) continue;
      const std::string properties = properties_of(h200);
      check_saved(properties, d, *Dnn::instance().plan_without_device(properties, d));
    } catch (Error& e) {
      e.during("restoring " + text_of(d));
      throw;
    }
}

template <class Description>
std::string row_of(const Description& d, SetDevice* set_device, bool& failed) {
  try {
    return fmt::format("  {}:{}\n", text_of(d), plans_of(d, set_device));
  } catch (const Error& e) {
    std::fputs((e.report() + "\n").c_str(), stderr);
    failed = true;
    return "";
  }
}

template <class Description>
std::string rows_of(const Recorder& gpu, SetDevice* set_device, bool& failed) {
  std::string out, spec;
  for (const auto& [first, d] : std::get<Recorder::Asked<Description>>(gpu.asked)) {
    if (first != spec) out += first + "\n";
    spec = first;
    out += row_of(d, set_device, failed);
  }
  return out;
}

// Without a driver cuDNN has no engine for a norm, which is the machine's fault: an own kernel must
// not hide it. On a machine with a driver there is a plan.
bool missing_driver_is_no_refusal(SetDevice* set_device) {
  const DnnNorm norm{.kind = NormKind::layer, .x = {32, 512, 1, 1}};
  try {
    on_each_gpu(set_device,
                [&](const std::string& gpu) { Dnn::instance().check_without_device(gpu, norm); });
  } catch (const NoAlgorithm&) {
    return false;
  } catch (const Error& e) {
    return e.fault() == Fault::device;
  }
  return true;
}

int run(const std::string& runtime, const std::string& driver, const std::string& golden,
        const std::string& configs) {
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 1);
  void* const handle = dlopen(runtime.c_str(), RTLD_NOW);
  auto* const set_device =
      handle ? reinterpret_cast<SetDevice*>(dlsym(handle, "set_device")) : nullptr;
  require(set_device != nullptr, "the stand-in for the CUDA runtime can be loaded");
  if (const std::string problem = Dnn::instance().problem(); !problem.empty()) {
    fmt::print("skipped: {}\n", problem);
    return 77;
  }
  const std::string title = fmt::format(
      "cuDNN {}: bytes of workspace for compute 8.0, 9.0, 10.0, 12.0\n", Dnn::instance().version());
  std::string made = title;
  bool failed = false;
  std::vector<std::string> specs;
  for (const auto& file : std::filesystem::recursive_directory_iterator(configs))
    if (file.path().extension() == ".yaml") specs.push_back(file.path().string());
  std::ranges::sort(specs);
  Recorder gpu;
  for (const std::string& spec : specs) ask(gpu, spec);
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) ask_others(gpu, type);
  made += rows_of<DnnConvolution>(gpu, set_device, failed);
  require(missing_driver_is_no_refusal(set_device), "a missing driver is no refusal of cuDNN's");
  // With a driver cuDNN may compile kernels for convolutions, too, which takes minutes for all.
  require(dlopen(driver.c_str(), RTLD_NOW) != nullptr, "the stand-in for the driver can be loaded");
  made += rows_of<DnnNorm>(gpu, set_device, failed);
  made += rows_of<DnnPool>(gpu, set_device, failed);
  made += rows_of<DnnAttention>(gpu, set_device, failed);
  check_restored<DnnNorm>(gpu, set_device);
  check_restored<DnnPool>(gpu, set_device);
  check_restored<DnnAttention>(gpu, set_device);
  if (failed) return 1;
  if (std::getenv("DPT_REWRITE_GOLDEN")) std::ofstream(golden) << made;
  std::ifstream file(golden);
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  if (!expected.starts_with(title)) {
    fmt::print("{} is of another version: only the existence of plans was checked\n", golden);
    return 0;
  }
  if (made == expected) return 0;
  fmt::print("plans differ from {}:\n{}", golden, made);
  return 1;
}

}  // namespace
}  // namespace dpt::cuda

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    return dpt::cuda::run(argv[1], argv[2], argv[3], argv[4]);
  } catch (const dpt::Error& e) {
    std::fputs((e.report() + "\n").c_str(), stderr);
  } catch (const dpt::BadSpec& e) {
    std::fputs((e.text + "\n").c_str(), stderr);
  }
  return 1;
}
