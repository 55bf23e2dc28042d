// Attention or its gradient as cuDNN's front end describes them.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "backend/cuda/module/dnn_builder.h"

namespace dpt::cuda {

// q, k and v are three of cuDNN's tensors in one, and so are their gradients: id 3 i + 1 of the
// second is 1 / 3 of a row behind the begin of tensor i.
inline std::vector<Lies> lies_of(const DnnAttention& a) {
  const auto third = static_cast<size_t>(a.heads * a.columns) * size_of(a.type);
  std::vector<Lies> out;
  for (size_t i = 0; i < a.tensors(); ++i)
    for (size_t part = 0; part < (a.packed(i) ? 3 : 1); ++part)
      out.push_back(
          {.id = static_cast<int64_t>(3 * i + part), .tensor = i, .offset = part * third});
  return out;
}

// Tensors of cuDNN are [N, heads, T, columns].
class AttentionGraph : public Builder {
 public:
  explicit AttentionGraph(const DnnAttention& a) : Builder(a.type), a_(a) {
    a.pass == DnnPass::forward ? forward() : backward();
  }

 private:
  // thirds: 3 in qkv, 1 in y.
  void place(fe::graph::Tensor_attributes& t, int64_t id, int64_t thirds) const {
    const int64_t row = thirds * a_.heads * a_.columns;
    t.set_uid(id)
        .set_dim({a_.samples, a_.heads, a_.positions, a_.columns})
        .set_stride({a_.positions * row, a_.columns, row, 1});
  }
  void place_sums(fe::graph::Tensor_attributes& t, int64_t id) const {
    t.set_uid(id)
        .set_dim({a_.samples, a_.heads, a_.positions, 1})
        .set_stride({a_.heads * a_.positions, a_.positions, 1, 1})
        .set_data_type(kFloat);
  }
  Tensor read(int64_t id, int64_t thirds) {
    fe::graph::Tensor_attributes t;
    place(t, id, thirds);
    return graph.tensor(t);
  }
  template <class A>
  A with_settings(A attributes) const {
    attributes.set_name("attention")
        .set_attn_scale(static_cast<float>(1 / std::sqrt(static_cast<double>(a_.columns))));
    if (a_.causal)
      attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
          .set_diagonal_band_right_bound(0);
    return attributes;
  }

  void forward() {
    const Tensor q = read(0, 3), k = read(1, 3), v = read(2, 3);
    const auto [y, sums] =
        graph.sdpa(q, k, v, with_settings(fe::graph::SDPA_attributes().set_generate_stats(true)));
    place(y->set_output(true), 3, 1);
    place_sums(sums->set_output(true), 6);
  }

  void backward() {
    const Tensor dy = read(0, 1), q = read(3, 3), k = read(4, 3), v = read(5, 3), y = read(6, 1);
    fe::graph::Tensor_attributes sums;
    place_sums(sums, 9);
    auto attributes = with_settings(fe::graph::SDPA_backward_attributes());
    attributes.set_deterministic_algorithm(true);
    const auto made = graph.sdpa_backward(q, k, v, y, dy, graph.tensor(sums), attributes);
    for (size_t i = 0; i < made.size(); ++i)
      place(made[i]->set_output(true), 12 + static_cast<int64_t>(i), 3);
  }

  const DnnAttention a_;
};

}  // namespace dpt::cuda
