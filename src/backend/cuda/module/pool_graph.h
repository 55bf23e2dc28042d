// Pooling or its gradient as cuDNN's front end describes them. It has no gradient in its graphs,
// only the back end's operation, which is made a node of a graph here.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backend/cuda/module/dnn_builder.h"

namespace dpt::cuda {

struct ResampleBackwardAttributes : fe::graph::Attributes<ResampleBackwardAttributes> {
  enum class input_names { dy, indices };
  enum class output_names { dx };
  std::unordered_map<input_names, Tensor> inputs;
  std::unordered_map<output_names, Tensor> outputs;
  using Attributes::get_non_virtual_uids;
};

inline fe::ResampleMode_t mode_of(PoolKind kind) {
  if (kind == PoolKind::max) return fe::ResampleMode_t::MAXPOOL;
  return kind == PoolKind::mean ? fe::ResampleMode_t::AVGPOOL_EXCLUDE_PADDING
                                : fe::ResampleMode_t::AVGPOOL_INCLUDE_PADDING;
}
inline fe::PaddingMode_t padding_of(PoolKind kind) {
  return kind == PoolKind::max ? fe::PaddingMode_t::NEG_INF_PAD : fe::PaddingMode_t::ZERO_PAD;
}

class ResampleBackward : public fe::graph::NodeCRTP<ResampleBackward> {
 public:
  ResampleBackward(ResampleBackwardAttributes tensors, const DnnPool& p,
                   const fe::detail::Context& of)
      : NodeCRTP(of), attributes(std::move(tensors)), p_(p) {}

  ResampleBackwardAttributes attributes;

  Type getType() override { return Type::RESAMPLE; }
  fe::error_t infer_properties_node() override {
    attributes.fill_from_context(context);
    return {fe::error_code_t::OK, ""};
  }
  fe::error_t create_cudnn_operations(
      std::unordered_set<int64_t>& used, std::vector<std::shared_ptr<fe::Operation>>& operations,
      fe::graph::managed_backend_descriptor_t&,
      std::unordered_map<int64_t, std::shared_ptr<fe::Tensor>>& tensors) const override {
    using In = ResampleBackwardAttributes::input_names;
    using Out = ResampleBackwardAttributes::output_names;
    const Window& w = p_.window;
    const int dims = p_.x.rank() - 2;
    const size_t first = 3 - static_cast<size_t>(dims);
    const auto windows = fe::ResampleDescBuilder()
                             .setComputeType(fe::DataType_t::FLOAT)
                             .setNanPropagation(CUDNN_PROPAGATE_NAN)
                             .setResampleMode(mode_of(p_.kind))
                             .setPaddingMode(padding_of(p_.kind))
                             .setSpatialDim(dims, w.kernel.data() + first)
                             .setSpatialStride(dims, w.stride.data() + first)
                             .setPrePadding(dims, w.before.data() + first)
                             .setPostPadding(dims, w.behind.data() + first)
                             .build();
    const auto of = [&](const Tensor& t) -> fe::Tensor& { return *tensors.at(t->get_uid()); };
    fe::OperationBuilder builder(fe::DescriptorType_t::OPERATION_RESAMPLE_BWD_DESCRIPTOR);
    builder.setResampleDesc(windows)
        .setdyDesc(of(attributes.inputs.at(In::dy)))
        .setdxDesc(of(attributes.outputs.at(Out::dx)));
    if (p_.kind == PoolKind::max) builder.setidxDesc(of(attributes.inputs.at(In::indices)));
    operations.push_back(std::make_shared<fe::Operation>(builder.build()));
    const std::vector<int64_t> ids = attributes.get_non_virtual_uids();
    used.insert(ids.begin(), ids.end());
    return {fe::error_code_t::OK, ""};
  }
  // A graph's structure as text. Nothing saves it: plans are saved without it.
  void serialize(json& j) const override { j["tag"] = "RESAMPLE_BACKWARD"; }

 private:
  const DnnPool p_;
};

class PoolGraph : public Builder {
 public:
  explicit PoolGraph(const DnnPool& p) : Builder(p.type), p_(p) {
    p.pass == DnnPass::forward ? forward() : backward();
  }

 private:
  bool max() const { return p_.kind == PoolKind::max; }

  void forward() {
    const Window& w = p_.window;
    const auto [y, indices] =
        graph.resample(input(0, p_.x), fe::graph::Resample_attributes()
                                           .set_resampling_mode(mode_of(p_.kind))
                                           .set_padding_mode(padding_of(p_.kind))
                                           .set_generate_index(max())
                                           .set_window(extents(w.kernel, p_.x))
                                           .set_stride(extents(w.stride, p_.x))
                                           .set_pre_padding(extents(w.before, p_.x))
                                           .set_post_padding(extents(w.behind, p_.x)));
    result(y, 1, p_.y, p_.type);
    if (!max()) return;
    result(indices, 2, p_.y, p_.type);
    indices->set_data_type(fe::DataType_t::INT8);
  }

  void backward() {
    ResampleBackwardAttributes a;
    a.set_name("gradient");
    a.inputs[ResampleBackwardAttributes::input_names::dy] = input(0, p_.y);
    const Tensor dx = std::make_shared<fe::graph::Tensor_attributes>();
    result(dx, 1, p_.x, p_.type);
    a.outputs[ResampleBackwardAttributes::output_names::dx] = dx;
    if (max()) {
      const Tensor indices = input(2, p_.y);
      indices->set_data_type(fe::DataType_t::INT8);
      a.inputs[ResampleBackwardAttributes::input_names::indices] = indices;
    }
    graph.add<ResampleBackward>(std::move(a), p_);
  }

  const DnnPool p_;
};

}  // namespace dpt::cuda
