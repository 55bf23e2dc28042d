// A norm or its gradients as cuDNN's front end describes them.
#pragma once

#include <array>

#include "backend/cuda/module/dnn_builder.h"

namespace dpt::cuda {

class NormGraph : public Builder {
 public:
  explicit NormGraph(const DnnNorm& n) : Builder(n.type), n_(n) {
    n.pass == DnnPass::forward ? forward() : backward();
  }

 private:
  // Tensor number `id` of the description.
  Tensor read(int64_t id) {
    const bool image = n_.image(static_cast<size_t>(id));
    const bool weight = id == 2 || (id == 1 && n_.pass == DnnPass::forward);
    const Tensor out = input(id, image ? n_.x : weight ? n_.weights() : n_.moments());
    if (!image) out->set_data_type(kFloat);
    return out;
  }
  Tensor rounded(const Tensor& t) const {
    t->set_data_type(type_of(n_.type));
    return t;
  }

  void forward() {
    const Tensor x = read(0), w = read(1), b = read(2);
    Tensor eps = graph.tensor(static_cast<float>(n_.eps));
    auto [y, mean, rstd] = normalised(x, w, b, eps);
    if (n_.add) y = rounded(sum(rounded(y), read(6)));
    if (n_.relu) y = relu(y);
    result(y, 3, n_.x, n_.type);
    result(mean, 4, n_.moments(), DType::f32);
    result(rstd, 5, n_.moments(), DType::f32);
  }
  std::array<Tensor, 3> normalised(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& eps) {
    constexpr auto kTraining = fe::NormFwdPhase_t::TRAINING;
    switch (n_.kind) {
      case NormKind::instance:
        return graph.instancenorm(
            x, w, b,
            fe::graph::Instancenorm_attributes().set_forward_phase(kTraining).set_epsilon(eps));
      case NormKind::layer:
        return graph.layernorm(
            x, w, b,
            fe::graph::Layernorm_attributes().set_forward_phase(kTraining).set_epsilon(eps));
      case NormKind::batch:
        break;
    }
    auto attributes = fe::graph::Batchnorm_attributes();
    attributes.set_epsilon(eps);
    const auto all = graph.batchnorm(x, w, b, attributes);
    return {all[0], all[1], all[2]};
  }

  void backward() {
    Tensor dy = read(0);
    if (n_.sum) dy = rounded(sum(dy, read(n_.add ? 10 : 9)));
    if (n_.relu) {
      const Tensor above = pointwise(read(8), graph.tensor(0.0F), fe::PointwiseMode_t::CMP_GT);
      above->set_data_type(fe::DataType_t::BOOLEAN);
      dy = rounded(pointwise(dy, above, fe::PointwiseMode_t::MUL));
    }
    if (n_.add) result(dy, 9, n_.x, n_.type);
    const auto [dx, dw, db] = gradients(dy);
    result(dx, 5, n_.x, n_.type);
    result(dw, 6, n_.weights(), DType::f32);
    result(db, 7, n_.weights(), DType::f32);
  }
  std::array<Tensor, 3> gradients(const Tensor& dy) {
    const Tensor x = read(1), w = read(2), mean = read(3), rstd = read(4);
    switch (n_.kind) {
      case NormKind::instance:
        return graph.instancenorm_backward(
            dy, x, w,
            fe::graph::Instancenorm_backward_attributes().set_saved_mean_and_inv_variance(mean,
                                                                                          rstd));
      case NormKind::layer:
        return graph.layernorm_backward(
            dy, x, w,
            fe::graph::Layernorm_backward_attributes().set_saved_mean_and_inv_variance(mean, rstd));
      case NormKind::batch:
        break;
    }
    return graph.batchnorm_backward(
        dy, x, w,
        fe::graph::Batchnorm_backward_attributes().set_saved_mean_and_inv_variance(mean, rstd));
  }

  const DnnNorm n_;
};

}  // namespace dpt::cuda
