#include "backend/cuda/module/convolution_plan.h"

#include <cstdlib>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/fail.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // where the front end looks cuDNN's functions up
}

namespace dpt::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

fe::DataType_t type_of(DType t) {
  switch (t) {
    case DType::f32:
      return fe::DataType_t::FLOAT;
    case DType::bf16:
      return fe::DataType_t::BFLOAT16;
    case DType::f16:
      return fe::DataType_t::HALF;
    default:
      fail(Fault::device, "cuDNN is not asked for convolutions of {}", name_of(t));
  }
}

std::string text_of(const DnnConvolution& c) {
  constexpr std::string_view passes[] = {"convolution", "input gradient of a convolution",
                                         "weight gradient of a convolution"};
  return fmt::format("{} of {} with {}{}{} in {}, {}", passes[static_cast<size_t>(c.pass)],
                     c.x.str(), c.w.str(), c.bias ? ", bias" : "", c.relu ? ", relu" : "",
                     name_of(c.in), name_of(c.out));
}

// Without the reasons of every engine that was tried; CUDNN_LOGLEVEL_DBG=2 shows these.
std::string first_line(fe::error_t& status) {
  const std::string message = status.get_message();
  return message.substr(0, message.find('\n'));
}

void check(fe::error_t status, const DnnConvolution& c) {
  if (status.is_bad())
    throw NoAlgorithm(
        fmt::format("cuDNN has no plan for the {}: {}", text_of(c), first_line(status)));
}

// The graph of one convolution; its tensors have the ids 0, 1, 2 and 3 of the order of
// device_work.h.
class GraphOf {
 public:
  explicit GraphOf(const DnnConvolution& c) : c_(c) {
    graph.set_io_data_type(type_of(c.in))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    switch (c.pass) {
      case ConvolutionPass::forward:
        forward();
        break;
      case ConvolutionPass::input_gradient:
        result(graph.conv_dgrad(input(0, c.y), input(1, c.w), with_window(Input())), c.x);
        break;
      case ConvolutionPass::weight_gradient: {
        const Tensor x = input(0, c.x), dy = input(1, c.y);
        result(graph.conv_wgrad(dy, x, with_window(Weight())), c.w);
        break;
      }
    }
  }
  fe::graph::Graph graph;

 private:
  using Input = fe::graph::Conv_dgrad_attributes;
  using Weight = fe::graph::Conv_wgrad_attributes;

  static std::vector<int64_t> pair(const Pair& p) { return {p[0], p[1]}; }
  template <class A>
  A with_window(A attributes) const {
    attributes.set_pre_padding(pair(c_.window.before))
        .set_post_padding(pair(c_.window.behind))
        .set_stride(pair(c_.window.stride))
        .set_dilation(pair(c_.window.dilation));
    return attributes;
  }
  static std::vector<int64_t> channels_last(const Shape& s) {
    return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
  }
  Tensor input(int64_t id, const Shape& shape) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_uid(id)
                            .set_dim({shape[0], shape[1], shape[2], shape[3]})
                            .set_stride(channels_last(shape)));
  }
  void result(const Tensor& tensor, const Shape& shape) {
    tensor->set_output(true)
        .set_uid(2)
        .set_dim({shape[0], shape[1], shape[2], shape[3]})
        .set_stride(channels_last(shape))
        .set_data_type(type_of(c_.out));
  }
  void forward() {
    Tensor y = graph.conv_fprop(input(0, c_.x), input(1, c_.w),
                                with_window(fe::graph::Conv_fprop_attributes()));
    if (c_.bias) {
      const Tensor bias = input(3, {1, c_.w[0], 1, 1});
      bias->set_data_type(type_of(c_.out));
      y = graph.pointwise(y, bias,
                          fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    }
    if (c_.relu)
      y = graph.pointwise(
          y, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
    result(y, c_.y);
  }

  const DnnConvolution c_;
};

class FrontEndPlan final : public ConvolutionPlan {
 public:
  // prepare: gives the graph its handle or device.
  template <class Prepare>
  FrontEndPlan(const DnnConvolution& c, Prepare&& prepare) : built_(c) {
    fe::graph::Graph& graph = built_.graph;
    check(graph.validate(), c);
    check(prepare(graph), c);
    check(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), c);
    using Note = fe::NumericalNote_t;
    graph.deselect_workspace_greater_than(static_cast<int64_t>(kConvolutionWorkspace));
    std::vector<Note> unwanted{Note::NONDETERMINISTIC, Note::REDUCED_PRECISION_REDUCTION};
    // As PyTorch decides it: what runs on tensor cores in f32 rounds to TF32.
    if (c.in == DType::f32) unwanted.push_back(Note::DOWN_CONVERT_INPUTS);
    if (c.in == DType::f32 && !c.tf32) unwanted.push_back(Note::TENSOR_CORE);
    graph.deselect_numeric_notes(unwanted);
    check(graph.check_support(), c);
    check(graph.build_plans(), c);
    int64_t bytes = 0;
    check(graph.get_workspace_size(bytes), c);
    workspace_ = static_cast<size_t>(bytes);
    check(graph.get_plan_name(name_), c);
    tensors_ = c.bias ? 4 : 3;
  }
  size_t workspace_bytes() const override { return workspace_; }
  std::string name() const override { return name_; }
  void run(void* handle, std::span<std::byte* const> tensors, std::byte* workspace) override {
    require(tensors.size() == tensors_, "a convolution has three tensors, and a bias");
    std::unordered_map<int64_t, void*> pack;
    for (size_t i = 0; i < tensors_; ++i) pack[static_cast<int64_t>(i)] = tensors[i];
    fe::error_t status = built_.graph.execute(static_cast<cudnnHandle_t>(handle), pack, workspace);
    if (status.is_bad()) fail(Fault::device, "cudnnBackendExecute: {}", first_line(status));
  }

 private:
  GraphOf built_;
  size_t workspace_ = 0, tensors_ = 3;
  std::string name_;
};

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    fail(Fault::device, "{}: {}", call, fe::detail::get_error_string(status));
}

}  // namespace

Dnn& Dnn::instance() {
  static Dnn dnn;
  return dnn;
}

Dnn::Dnn() : library_(find_library("libcudnn.so.9")) {
  cudnn_frontend::cudnn_dlhandle = library_.handle;
  // The front end would take an older runtime where there is one beside ours.
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME",
         fmt::format("libcudart.so.{}", CUDART_VERSION / 1000).c_str(), 0);
}

std::string Dnn::problem() const { return library_.problem(); }

std::string Dnn::version() const {
  const size_t v = library_.handle ? fe::detail::get_backend_version() : 0;
  return fmt::format("{}.{}.{}, front end {}.{}.{}", v / 10000, v / 100 % 100, v % 100,
                     CUDNN_FRONTEND_MAJOR_VERSION, CUDNN_FRONTEND_MINOR_VERSION,
                     CUDNN_FRONTEND_PATCH_VERSION);
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

std::unique_ptr<ConvolutionPlan> Dnn::plan(void* handle, const DnnConvolution& convolution) {
  return std::make_unique<FrontEndPlan>(convolution, [&](fe::graph::Graph& graph) {
    return graph.build_operation_graph(static_cast<cudnnHandle_t>(handle));
  });
}

std::unique_ptr<ConvolutionPlan> Dnn::plan_without_device(const std::string& properties,
                                                          const DnnConvolution& convolution) {
  auto device = std::make_shared<fe::DeviceProperties>();
  check(device->deserialize({properties.begin(), properties.end()}), convolution);
  return std::make_unique<FrontEndPlan>(convolution, [&](fe::graph::Graph& graph) {
    graph.set_device_properties(device);
    return graph.build_operation_graph();
  });
}

}  // namespace dpt::cuda
