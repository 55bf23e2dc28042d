// Whether cuDNN has a plan for every convolution, batch norm, pooling and attention of the shipped
// specs, their gradients, and some others, on four generations of GPUs, in every precision:
// `plans RUNTIME DRIVER GOLDEN SPEC...`. No GPU is needed, and nothing is run: that a plan exists
// is all that is shown. RUNTIME stands in for the CUDA runtime (no_device.cpp), DRIVER, the
// toolkit's own stub, for libcuda.so.1. DPT_REWRITE_GOLDEN=1 writes GOLDEN anew; of another version
// of cuDNN only the existence of plans is checked. Exit code 77: there is no cuDNN.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/cuda/descriptions.h"
#include "backend/cuda/module/dnn_plan.h"
#include "base/error.h"
#include "cli/spec_argument.h"
#include "data/dataset.h"
#include "graph/fuse.h"
#include "graph/program.h"

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

Shape with_height(const Shape& s) { return s.rank() == 4 ? s : Shape{s[0], s[1], 1, s[2]}; }

std::optional<DnnConvolution> convolution_of(const KernelQuery& q) {
  DnnConvolution out{.bias = q.in.size() > 2, .relu = q.op == "convolution_relu"};
  const TensorDesc &a = q.in[0], &b = q.in.size() > 1 ? q.in[1] : a, &c = q.out[0];
  const auto set = [&](ConvolutionPass pass, const TensorDesc& x, const TensorDesc& w,
                       const TensorDesc& y) {
    out.pass = pass;
    out.x = with_height(x.shape), out.w = with_height(w.shape), out.y = with_height(y.shape);
  };
  if (q.op == "convolution" || out.relu)
    set(ConvolutionPass::forward, a, b, c);
  else if (q.op == "convolution_transpose")
    set(ConvolutionPass::input_gradient, c, b, a), out.bias = false;
  else if (q.op == "convolution_weight_gradient")
    set(ConvolutionPass::weight_gradient, b, c, a);
  else
    return std::nullopt;
  const auto& settings = std::any_cast<const Convolution&>(q.attrs);
  out.window = settings.window, out.groups = settings.groups;
  return out;
}

struct Precision {
  const char* name;
  DType type;
  bool tf32;
};
constexpr Precision kPrecisions[] = {{"f32", DType::f32, false},
                                     {"tf32", DType::f32, true},
                                     {"f16", DType::f16, false},
                                     {"bf16", DType::bf16, false}};

std::string text_of(const DnnConvolution& c) {
  constexpr const char* passes[] = {"forward", "input gradient", "weight gradient"};
  const Window& w = c.window;
  return fmt::format("{}{}{} x {} w {} stride {} padding {}{}{}",
                     passes[static_cast<size_t>(c.pass)], c.bias ? " + bias" : "",
                     c.relu ? ", relu" : "", c.x.str(), c.w.str(), w.stride[0], w.before[0],
                     w.behind != w.before ? " before" : "",
                     c.groups > 1 ? fmt::format(" groups {}", c.groups) : "");
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

// Bytes of workspace on each GPU.
std::string workspaces(const DnnConvolution& c, SetDevice* set_device) {
  std::string out;
  on_each_gpu(set_device, [&](const std::string& gpu) {
    out += fmt::format(" {}", Dnn::instance().plan_without_device(gpu, c)->workspace_bytes());
  });
  return out;
}

// A step as a GPU trains it.
Graph graph_of(const std::string& path) {
  SpecArgument argument{path, {"device=cpu", "devices=1", "cores=1", "parallel=single"}};
  // Shapes are wanted, not files, which may be missing.
  const Choice data = load(argument).spec.data.dataset;
  if (const auto stand_in = static_cast<const DatasetType*>(data.what)->stand_in)
    argument.overrides.push_back(fmt::format("data.dataset={}", stand_in(data.settings)));
  Graph graph = open_session(load(argument), {})->graph;
  fuse_products(graph);
  fuse_batch_norms(graph);
  return graph;
}

// Each convolution of a spec once, in every precision.
std::string convolutions_of(const Graph& graph, SetDevice* set_device, bool& failed) {
  std::set<std::string> seen;
  std::string out;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    std::optional<DnnConvolution> c = convolution_of(query_of(graph, node));
    if (!c || !seen.insert(text_of(*c)).second) continue;
    for (const Precision& p : kPrecisions) {
      c->in = c->out = p.type, c->tf32 = p.tf32;
      try {
        out += fmt::format("  {} {}:{}\n", p.name, text_of(*c), workspaces(*c, set_device));
      } catch (const Error& e) {
        std::fputs((e.report() + "\n").c_str(), stderr);
        failed = true;
      }
    }
  }
  return out;
}

std::optional<DnnNorm> norm_of(const KernelQuery& q) {
  if (q.op.ends_with("_training"))
    return DnnNorm{.x = with_height(q.in[0].shape),
                   .add = q.op == "batch_norm_add_relu_training",
                   .relu = q.op != "batch_norm_training"};
  if (q.op.starts_with("batch_norm") && q.op.ends_with("_backward"))
    return DnnNorm{.pass = DnnPass::backward,
                   .x = with_height(q.in[1].shape),
                   .add = q.out.size() > 3,
                   .relu = q.in.size() > 4,
                   .sum = q.in.size() > 5};
  return std::nullopt;
}

std::string text_of(const DnnNorm& n) {
  const bool back = n.pass == DnnPass::backward;
  return fmt::format("{}{}{}{}{} x {}", name_of(n.kind), back ? " back" : "",
                     n.add ? back ? ", dr" : " + r" : "", n.relu ? ", relu" : "",
                     n.sum ? ", two dy" : "", n.x.str());
}

std::string text_of(const DnnPool& p) {
  const Window& w = p.window;
  return fmt::format("{}{} x {} window {} {} stride {} padding {}{}", name_of(p.kind),
                     p.pass == DnnPass::backward ? " back" : "", p.x.str(), w.kernel[0],
                     w.kernel[1], w.stride[0], w.before[0],
                     w.behind != w.before ? fmt::format(" and {}", w.behind[0]) : "");
}

std::string text_of(const DnnAttention& a) {
  return fmt::format("attention{}{} x {} places, {} heads, {} columns",
                     a.pass == DnnPass::backward ? " back" : "", a.causal ? ", causal" : "",
                     a.places, a.heads, a.columns);
}

// Kernels of norms, pooling and attention are compiled where they run, so it is only asked whether
// they would be. Attention is in halves alone.
template <class Description>
std::string row_of(Description n, SetDevice* set_device, bool& failed) {
  constexpr bool halves = std::is_same_v<Description, DnnAttention>;
  std::string out;
  for (const DType type : {halves ? DType::f16 : DType::f32, DType::bf16}) {
    n.type = type;
    try {
      on_each_gpu(set_device,
                  [&](const std::string& gpu) { Dnn::instance().check_without_device(gpu, n); });
      out += fmt::format("  {} {}: compiled when it runs\n", name_of(type), text_of(n));
    } catch (const Error& e) {
      std::fputs((e.report() + "\n").c_str(), stderr);
      failed = true;
    }
  }
  return out;
}

// Each batch norm of a spec, and its gradients, once.
std::string norms_of(const Graph& graph, SetDevice* set_device, bool& failed) {
  std::set<std::string> seen;
  std::string out;
  for (size_t node = 0; node < graph.nodes.size(); ++node)
    if (const auto n = norm_of(query_of(graph, node)); n && seen.insert(text_of(*n)).second)
      out += row_of(*n, set_device, failed);
  return out;
}

// The same of pooling.
std::string pools_of(const Graph& graph, SetDevice* set_device, bool& failed) {
  std::set<std::string> seen;
  std::string out;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const KernelQuery q = query_of(graph, node);
    if (q.op.find("_pool") == std::string_view::npos) continue;
    const DnnPool p = pool_of(q);
    if (seen.insert(text_of(p)).second) out += row_of(p, set_device, failed);
  }
  return out;
}

// The same of attention.
std::string attention_of_spec(const Graph& graph, SetDevice* set_device, bool& failed) {
  std::set<std::string> seen;
  std::string out;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const KernelQuery q = query_of(graph, node);
    if (q.op != "attention" && q.op != "attention_gradient") continue;
    const DnnAttention a = attention_of(q);
    if (seen.insert(text_of(a)).second) out += row_of(a, set_device, failed);
  }
  return out;
}

// Pooling of all kinds whose padding differs at every side.
std::string other_pools(SetDevice* set_device, bool& failed) {
  DnnPool p{.x = {2, 5, 9, 7},
            .y = {2, 5, 5, 3},
            .window = {.kernel = {3, 3}, .stride = {2, 2}, .before = {0, 1}, .behind = {2, 0}}};
  std::string out = "other pooling\n";
  for (const PoolKind kind : {PoolKind::max, PoolKind::mean, PoolKind::mean_with_padding})
    for (const DnnPass pass : {DnnPass::forward, DnnPass::backward}) {
      p.kind = kind, p.pass = pass;
      out += row_of(p, set_device, failed);
    }
  return out;
}

// Attention and its gradient, of narrow and wide heads.
std::string attention_of_shapes(SetDevice* set_device, bool& failed) {
  std::string out = "other attention\n";
  for (const DnnPass pass : {DnnPass::forward, DnnPass::backward})
    for (const bool causal : {false, true}) {
      DnnAttention a{.pass = pass, .samples = 3, .places = 67, .heads = 2, .causal = causal};
      for (const int64_t columns : {8, 24, 64, 72, 128}) {
        a.columns = columns;
        out += row_of(a, set_device, failed);
      }
      out += row_of(DnnAttention{pass, 12, 1024, 12, 64, causal}, set_device, failed);
      out += row_of(DnnAttention{pass, 5, 2, 1, 16, causal}, set_device, failed);
    }
  return out;
}

// Layer and instance norms of some shapes.
std::string other_norms(SetDevice* set_device, bool& failed) {
  std::string out = "other norms\n";
  for (const DnnPass pass : {DnnPass::forward, DnnPass::backward}) {
    for (const Shape& x : {Shape{512, 768, 1, 1}, Shape{17, 33, 1, 1}, Shape{1, 10, 1, 1}})
      out += row_of(DnnNorm{.kind = NormKind::layer, .pass = pass, .x = x}, set_device, failed);
    for (const Shape& x : {Shape{16, 64, 28, 28}, Shape{2, 6, 5, 5}, Shape{3, 4, 1, 9}})
      out += row_of(DnnNorm{.kind = NormKind::instance, .pass = pass, .x = x}, set_device, failed);
  }
  return out;
}

int run(const std::string& runtime, const std::string& driver, const std::string& golden,
        std::vector<std::string> specs) {
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
  std::sort(specs.begin(), specs.end());
  std::vector<Graph> graphs;
  for (const std::string& spec : specs) graphs.push_back(graph_of(spec));
  const auto add = [&](auto rows_of) {
    for (size_t i = 0; i < specs.size(); ++i)
      if (const std::string rows = rows_of(graphs[i], set_device, failed); !rows.empty())
        made += std::filesystem::path(specs[i]).filename().string() + "\n" + rows;
  };
  add(convolutions_of);
  // With a driver cuDNN may compile kernels for convolutions, too, which takes minutes for all.
  require(dlopen(driver.c_str(), RTLD_NOW) != nullptr, "the stub of the driver can be loaded");
  add(norms_of);
  made += other_norms(set_device, failed);
  add(pools_of);
  made += other_pools(set_device, failed);
  add(attention_of_spec);
  made += attention_of_shapes(set_device, failed);
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
  if (argc < 5) return 2;
  try {
    return dpt::cuda::run(argv[1], argv[2], argv[3], {argv + 4, argv + argc});
  } catch (const dpt::Error& e) {
    std::fputs((e.report() + "\n").c_str(), stderr);
  } catch (const dpt::BadSpec& e) {
    std::fputs((e.text + "\n").c_str(), stderr);
  }
  return 1;
}
