// What the graphs of cuDNN's front end share. For dnn_plan.cpp alone: the front end's headers take
// half a minute to read.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cuda/interface/device_work.h"
#include "base/fail.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

namespace dpt::cuda {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

inline fe::DataType_t type_of(DType t) {
  switch (t) {
    case DType::f32:
      return fe::DataType_t::FLOAT;
    case DType::bf16:
      return fe::DataType_t::BFLOAT16;
    case DType::f16:
      return fe::DataType_t::HALF;
    default:
      fail(Fault::device, "cuDNN is not asked for {}", name_of(t));
  }
}

// Where one of cuDNN's tensors lies: in which of the description's, how many bytes behind its
// begin.
struct Lies {
  int64_t id;
  size_t tensor, offset = 0;
};
template <class Description>
std::vector<Lies> lies_of(const Description& d) {
  std::vector<Lies> out;
  for (size_t i = 0; i < d.tensors(); ++i) out.push_back({static_cast<int64_t>(i), i});
  return out;
}

// A graph that takes nodes of other making, too.
class OpenGraph : public fe::graph::Graph {
 public:
  template <class Node, class... A>
  void add(A&&... a) {
    sub_nodes.push_back(std::make_shared<Node>(std::forward<A>(a)..., context));
  }
};

// Images have the ids of the order of device_work.h, and lie channels_last.
class Builder {
 public:
  OpenGraph graph;
  static constexpr fe::DataType_t kFloat = fe::DataType_t::FLOAT;

 protected:
  explicit Builder(DType type) {
    graph.set_io_data_type(type_of(type))
        .set_intermediate_data_type(kFloat)
        .set_compute_data_type(kFloat);
  }
  Tensor input(int64_t id, const Shape& shape) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_uid(id)
                            .set_dim(dims(shape))
                            .set_stride(channels_last(shape)));
  }
  static void result(const Tensor& tensor, int64_t id, const Shape& shape, DType type) {
    tensor->set_output(true)
        .set_uid(id)
        .set_dim(dims(shape))
        .set_stride(channels_last(shape))
        .set_data_type(type_of(type));
  }
  Tensor pointwise(const Tensor& a, const Tensor& b, fe::PointwiseMode_t mode) {
    return graph.pointwise(a, b, fe::graph::Pointwise_attributes().set_mode(mode));
  }
  Tensor sum(const Tensor& a, const Tensor& b) { return pointwise(a, b, fe::PointwiseMode_t::ADD); }
  // The extents that an image of this shape has.
  static std::vector<int64_t> extents(const Extents& e, const Shape& image) {
    return {e.end() - (image.rank() - 2), e.end()};
  }
  Tensor relu(const Tensor& x) {
    return graph.pointwise(
        x, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
  }

 private:
  static std::vector<int64_t> dims(const Shape& s) {
    return {s.extents().begin(), s.extents().end()};
  }
  static std::vector<int64_t> channels_last(const Shape& s) {
    const auto steps = strides_of(s, Layout::channels_last);
    return {steps.begin(), steps.begin() + s.rank()};
  }
};

}  // namespace dpt::cuda
