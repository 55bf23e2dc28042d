#include "backend/cuda/module/dnn_plan.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "backend/cuda/interface/cuda_error.h"
#include "backend/cuda/interface/library_answer.h"
#include "backend/cuda/interface/work_text.h"
#include "backend/cuda/module/attention_graph.h"
#include "backend/cuda/module/norm_graph.h"
#include "backend/cuda/module/pool_graph.h"
#include "backend/cuda/module/restored_plan.h"
#include "base/fail.h"
#include "dnn_sources.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // where the front end looks cuDNN's functions up
}

namespace dpt::cuda {
namespace {

// Without the reasons of every engine that was tried; CUDNN_LOGLEVEL_DBG=2 shows these.
std::string first_line(fe::error_t& status) {
  const std::string message = status.get_message();
  return message.substr(0, message.find('\n'));
}

DnnCode code_of(fe::error_code_t code) {
  switch (code) {
    case fe::error_code_t::OK:
      return DnnCode::good;
    case fe::error_code_t::GRAPH_NOT_SUPPORTED:
      return DnnCode::not_supported;
    case fe::error_code_t::HEURISTIC_QUERY_FAILED:
      return DnnCode::heuristic_failed;
    case fe::error_code_t::GRAPH_EXECUTION_PLAN_CREATION_FAILED:
      return DnnCode::no_plan;
    default:
      return DnnCode::other;
  }
}

// All that the library says, on one line.
std::string whole_text(std::string message) {
  constexpr size_t kMost = 2000;
  std::ranges::replace(message, '\n', ' ');
  return message.substr(0, kMost);
}

template <class Description>
void check(fe::error_t status, const Description& d) {
  const std::string message = status.get_message();
  switch (dnn_answer(code_of(status.get_code()), message)) {
    case Answer::made:
      return;
    case Answer::refused:
      throw NoAlgorithm(
          fmt::format("cuDNN has no plan for the {}: {}", describe(d), first_line(status)));
    case Answer::failed:
      fail(says_out_of_memory(message) ? Fault::memory : Fault::device,
           "cuDNN failed to make a plan for the {}: {}; `dptrain doctor` lists the libraries and "
           "their versions",
           describe(d), whole_text(message));
  }
}

class GraphOf : public Builder {
 public:
  explicit GraphOf(const DnnConvolution& c) : Builder(c.in), c_(c) {
    switch (c.pass) {
      case ConvolutionPass::forward:
        forward();
        break;
      case ConvolutionPass::input_gradient:
        made(graph.conv_dgrad(input(0, c.y), input(1, c.w), with_window(Input())), c.x);
        break;
      case ConvolutionPass::weight_gradient: {
        const Tensor x = input(0, c.x), dy = input(1, c.y);
        made(graph.conv_wgrad(dy, x, with_window(Weight())), c.w);
        break;
      }
    }
  }

 private:
  using Input = fe::graph::Conv_dgrad_attributes;
  using Weight = fe::graph::Conv_wgrad_attributes;

  template <class A>
  A with_window(A attributes) const {
    attributes.set_pre_padding(extents(c_.window.before, c_.x))
        .set_post_padding(extents(c_.window.behind, c_.x))
        .set_stride(extents(c_.window.stride, c_.x))
        .set_dilation(extents(c_.window.dilation, c_.x));
    return attributes;
  }
  void made(const Tensor& tensor, const Shape& shape) const { result(tensor, 2, shape, c_.out); }
  void forward() {
    Tensor y = graph.conv_fprop(input(0, c_.x), input(1, c_.w),
                                with_window(fe::graph::Conv_fprop_attributes()));
    if (c_.bias) {
      const Tensor bias =
          input(3, c_.x.rank() == 5 ? Shape{1, c_.w[0], 1, 1, 1} : Shape{1, c_.w[0], 1, 1});
      bias->set_data_type(type_of(c_.out));
      y = sum(y, bias);
    }
    if (c_.relu) y = relu(y);
    made(y, c_.y);
  }

  const DnnConvolution c_;
};

// As PyTorch decides it: what runs on tensor cores in f32 rounds to TF32.
std::vector<fe::NumericalNote_t> unwanted(bool f32, bool tf32) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> out{Note::NONDETERMINISTIC, Note::REDUCED_PRECISION_REDUCTION};
  if (f32) out.push_back(Note::DOWN_CONVERT_INPUTS);
  if (f32 && !tf32) out.push_back(Note::TENSOR_CORE);
  return out;
}

// What a call returns, or throws: descriptors of the back end, which some graphs make by
// themselves.
template <class Call>
fe::error_t returned(Call&& call) {
  try {
    return call();
  } catch (const fe::cudnnException& e) {
    return {fe::error_code_t::CUDNN_BACKEND_API_FAILED, e.what()};
  } catch (const nlohmann::json::exception& e) {  // of what a file holds in a plan's place
    return {fe::error_code_t::INVALID_VALUE, e.what()};
  }
}

// Up to where it is known that there is a plan. prepare: gives the graph its handle or device.
template <class Description, class Prepare>
void find_plans(fe::graph::Graph& graph, const Description& d, Prepare&& prepare,
                const std::vector<fe::NumericalNote_t>& notes, size_t workspace = kDnnWorkspace) {
  check(graph.validate(), d);
  check(returned([&] { return prepare(graph); }), d);
  check(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), d);
  graph.deselect_workspace_greater_than(static_cast<int64_t>(workspace));
  graph.deselect_numeric_notes(notes);
  check(graph.check_support(), d);
}

template <class Prepare>
void find_plans(GraphOf& built, const DnnConvolution& c, Prepare&& prepare) {
  find_plans(built.graph, c, prepare, unwanted(c.in == DType::f32, c.tf32));
}
template <class Prepare>
void find_plans(NormGraph& built, const DnnNorm& n, Prepare&& prepare) {
  find_plans(built.graph, n, prepare, unwanted(n.type == DType::f32, false));
}
// The engine that pools also multiplies matrices, hence its note of tensor cores; none is rounded.
template <class Prepare>
void find_plans(PoolGraph& built, const DnnPool& p, Prepare&& prepare) {
  find_plans(built.graph, p, prepare, unwanted(p.type == DType::f32, true));
}
template <class Prepare>
void find_plans(AttentionGraph& built, const DnnAttention& a, Prepare&& prepare) {
  find_plans(built.graph, a, prepare, unwanted(false, false), a.workspace);
}

// The class that builds the graph of a description.
template <class Description>
struct GraphFor;
template <>
struct GraphFor<DnnConvolution> {
  using Type = GraphOf;
};
template <>
struct GraphFor<DnnNorm> {
  using Type = NormGraph;
};
template <>
struct GraphFor<DnnPool> {
  using Type = PoolGraph;
};
template <>
struct GraphFor<DnnAttention> {
  using Type = AttentionGraph;
};

class FrontEndPlan final : public DnnPlan {
 public:
  // graph: with a plan.
  template <class Description>
  FrontEndPlan(std::shared_ptr<fe::graph::Graph> graph, const Description& d, std::string name,
               bool from_cache)
      : graph_(std::move(graph)),
        lies_(lies_of(d)),
        tensors_(d.tensors()),
        name_(std::move(name)),
        from_cache_(from_cache) {
    int64_t bytes = 0;
    check(graph_->get_workspace_size(bytes), d);
    workspace_ = static_cast<size_t>(bytes);
  }
  size_t workspace_bytes() const override { return workspace_; }
  std::string name() const override { return name_; }
  bool from_cache() const override { return from_cache_; }
  // The name, a line break, and the plan as the front end writes it, without the graph that it is
  // for.
  std::string saved() const override {
    std::vector<uint8_t> plan;
    if (returned([&] { return graph_->serialize(plan, false); }).is_bad()) return "";
    return fmt::format("{}\n{}", name_,
                       std::string_view(reinterpret_cast<char*>(plan.data()), plan.size()));
  }
  void run(void* handle, std::span<std::byte* const> tensors, std::byte* workspace) override {
    require(tensors.size() == tensors_, "a graph of cuDNN has the tensors of its description");
    std::unordered_map<int64_t, void*> pack;
    for (const Lies& l : lies_) pack[l.id] = tensors[l.tensor] + l.offset;
    fe::error_t status = graph_->execute(static_cast<cudnnHandle_t>(handle), pack, workspace);
    if (status.is_bad())
      fail(Fault::device, "cudnnBackendExecute: {}{}", first_line(status), how_to_find_the_call());
  }

 private:
  std::shared_ptr<fe::graph::Graph> graph_;
  const std::vector<Lies> lies_;
  size_t tensors_, workspace_ = 0;
  std::string name_;
  bool from_cache_;
};

template <class Description, class Prepare>
std::unique_ptr<DnnPlan> make_plan(const Description& d, Prepare&& prepare) {
  const auto built = std::make_shared<typename GraphFor<Description>::Type>(d);
  find_plans(*built, d, prepare);
  fe::graph::Graph& graph = built->graph;
  check(graph.build_plans(), d);
  std::string name;
  check(graph.get_plan_name(name), d);
  return std::make_unique<FrontEndPlan>(std::shared_ptr<fe::graph::Graph>(built, &graph), d, name,
                                        false);
}

// load: gives a graph the plan that the front end wrote. Throws where it is none, or cuDNN takes it
// no more.
template <class Description, class Load>
std::unique_ptr<DnnPlan> restore_plan(const Description& d, const std::string& saved, Load&& load) {
  const size_t line = saved.find('\n');
  if (line == std::string::npos) fail(Fault::device, "a saved plan has no name");
  const auto graph = std::make_shared<fe::graph::Graph>();
  const std::vector<uint8_t> bytes(saved.begin() + static_cast<std::ptrdiff_t>(line) + 1,
                                   saved.end());
  fe::error_t status = returned([&] { return load(*graph, bytes); });
  if (status.is_bad()) fail(Fault::device, "{}", first_line(status));
  return std::make_unique<FrontEndPlan>(graph, d, saved.substr(0, line), true);
}

// Gives a graph the GPU of a handle, or one that need not be there.
auto for_handle(void* handle) {
  return [handle](fe::graph::Graph& graph) {
    return graph.build_operation_graph(static_cast<cudnnHandle_t>(handle));
  };
}
template <class Description>
std::shared_ptr<fe::DeviceProperties> device_of(const std::string& properties,
                                                const Description& d) {
  auto device = std::make_shared<fe::DeviceProperties>();
  check(device->deserialize({properties.begin(), properties.end()}), d);
  return device;
}
template <class Description>
auto for_properties(const std::string& properties, const Description& d) {
  return [device = device_of(properties, d)](fe::graph::Graph& graph) {
    graph.set_device_properties(device);
    return graph.build_operation_graph();
  };
}

// Variables that choose cuDNN's engines and settings.
std::string settings_of_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool log = text.substr(0, text.find('=')).find("LOG") != std::string_view::npos;
    if ((text.starts_with("CUDNN_") && !log) || text.starts_with("NVIDIA_TF32_OVERRIDE="))
      all.emplace_back(text);
  }
  std::ranges::sort(all);
  return fmt::format("{}", fmt::join(all, "; "));
}

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    fail(Fault::device, "{}: {}", call, fe::detail::get_error_string(status));
}

}  // namespace

Dnn& Dnn::instance() {
  static Dnn dnn;
  return dnn;
}

Dnn::Dnn() : report_(cuda_library("cuDNN")) {
  cudnn_frontend::cudnn_dlhandle = find_library("libcudnn.so.9").handle;
  find_library("libnvrtc.so.13");  // else cuDNN takes it from where the loader looks
  // The front end would take an older runtime where there is one beside ours.
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME",
         fmt::format("libcudart.so.{}", CUDART_VERSION / 1000).c_str(), 0);
  libraries_ = fmt::format("cuDNN {}; NVRTC {}; CUDA {}; settings {}; graphs {}", version(),
                           cuda_library("NVRTC").version, CUDART_VERSION, settings_of_environment(),
                           kDnnSources);
}

template <class Description>
std::unique_ptr<DnnPlan> Dnn::known_or_made(void* handle, const std::string& gpu,
                                            const Description& d) {
  const std::string key = fmt::format("{}\n{}\n{}", all_of(d), gpu, libraries_);
  if (const std::optional<std::string> saved = cache_.read(key)) try {
      auto restored = restore_plan(d, *saved, [&](auto& graph, const std::vector<uint8_t>& bytes) {
        return graph.deserialize(static_cast<cudnnHandle_t>(handle), bytes, false, false);
      });
      return std::make_unique<RestoredPlan>(std::move(restored), cache_, key, [d](void* current) {
        return make_plan(d, for_handle(current));
      });
    } catch (const std::exception& e) {
      cache_.reject(key, e.what());
    }
  auto out = make_plan(d, for_handle(handle));
  cache_.write(key, out->saved());
  return out;
}

std::string Dnn::problem() const { return report_.problem; }

std::string Dnn::version() const {
  return fmt::format("{}, front end {}.{}.{}", report_.version, CUDNN_FRONTEND_MAJOR_VERSION,
                     CUDNN_FRONTEND_MINOR_VERSION, CUDNN_FRONTEND_PATCH_VERSION);
}

void* Dnn::make_handle() {
  cudnnHandle_t handle = nullptr;
  check(fe::detail::create_handle(&handle), "cudnnCreate");
  return handle;
}

void Dnn::destroy_handle(void* handle) noexcept {
  fe::detail::destroy_handle(static_cast<cudnnHandle_t>(handle));
}

void Dnn::set_stream(void* handle, void* stream) {
  check(
      fe::detail::set_stream(static_cast<cudnnHandle_t>(handle), static_cast<cudaStream_t>(stream)),
      "cudnnSetStream");
}

std::unique_ptr<DnnPlan> Dnn::plan(void* handle, const std::string& gpu, const DnnConvolution& d) {
  return known_or_made(handle, gpu, d);
}

std::unique_ptr<DnnPlan> Dnn::plan(void* handle, const std::string& gpu, const DnnNorm& d) {
  return known_or_made(handle, gpu, d);
}

std::unique_ptr<DnnPlan> Dnn::plan(void* handle, const std::string& gpu, const DnnPool& d) {
  return known_or_made(handle, gpu, d);
}

std::unique_ptr<DnnPlan> Dnn::plan(void* handle, const std::string& gpu, const DnnAttention& d) {
  return known_or_made(handle, gpu, d);
}

template <class Description>
void Dnn::check_without_device(const std::string& properties, const Description& d) {
  typename GraphFor<Description>::Type built(d);
  find_plans(built, d, for_properties(properties, d));
}

template <class Description>
std::unique_ptr<DnnPlan> Dnn::plan_without_device(const std::string& properties,
                                                  const Description& d) {
  return make_plan(d, for_properties(properties, d));
}

template <class Description>
std::unique_ptr<DnnPlan> Dnn::restore_without_device(const std::string& properties,
                                                     const Description& d,
                                                     const std::string& saved) {
  return restore_plan(d, saved, [&](auto& graph, const std::vector<uint8_t>& bytes) {
    graph.set_device_properties(device_of(properties, d));
    return graph.deserialize(bytes);
  });
}

#define DPT_WITHOUT_DEVICE(Description)                                            \
  template void Dnn::check_without_device(const std::string&, const Description&); \
  template std::unique_ptr<DnnPlan> Dnn::plan_without_device(const std::string&,   \
                                                             const Description&);  \
  template std::unique_ptr<DnnPlan> Dnn::restore_without_device(                   \
      const std::string&, const Description&, const std::string&);
DPT_WITHOUT_DEVICE(DnnConvolution)
DPT_WITHOUT_DEVICE(DnnNorm)
DPT_WITHOUT_DEVICE(DnnPool)
DPT_WITHOUT_DEVICE(DnnAttention)
#undef DPT_WITHOUT_DEVICE

}  // namespace dpt::cuda
