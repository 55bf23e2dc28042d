// position_embedding: y[N, T, E] = x[N, T, E] + w[T, E], broadcast over samples. w[R, E] may have
// more rows than T, for longer sequences.
//   position_embedding_gradient(dy) -> dw[R, E]: the sum of dy over the samples, in their order; 0
//   for rows from T on
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

void check(const Shape& x, const Shape& w) {
  if (x.rank() != 3 || w.rank() != 2 || x[2] != w[1] || x[1] > w[0])
    fail(Fault::spec, "position_embedding: input {} does not fit weight {}", x.str(), w.str());
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  need_real("position_embedding", in[0]);
  check(in[0].shape, in[1].shape);
  return {in[0]};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in,
                                       const PositionEmbedding& attrs) {
  const Shape w{attrs.rows, in[0].shape.back()};
  check(in[0].shape, w);
  return {{full(in[0].dtype), w}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {dy[0],
          g.apply("position_embedding_gradient", {dy[0]}, PositionEmbedding{g.shape(n.in[1])[0]})};
}

void forward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>(), w = args.in[1].as<const T>();
    const auto y = args.out[0].as<T>();
    const auto sample = static_cast<size_t>(args.in[0].desc.shape.tail(1).elements());
    for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] + w[i % sample];
  });
}

void backward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const auto dw = args.out[0].as<T>();
    const auto sample = static_cast<size_t>(args.in[0].desc.shape.tail(1).elements());
    std::vector<double> sum(dw.size());
    for (size_t i = 0; i < dy.size(); ++i) sum[i % sample] += static_cast<double>(dy[i]);
    for (size_t i = 0; i < dw.size(); ++i) dw[i] = static_cast<T>(sum[i]);
  });
}

}  // namespace

Operators position_embedding() {
  return {{.name = "position_embedding",
           .precision = Precision::full,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .torch_order = TorchOrder::of_first},
          {.name = "position_embedding_gradient",
           .precision = Precision::full,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .flops = elements_of_first_input,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
