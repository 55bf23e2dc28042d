// add: the sum of two or more inputs of one shape, added from the first to the last.
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  need_real("add", in[0]);
  if (in.size() < 2) fail(Fault::spec, "add: takes two or more inputs");
  for (const TensorDesc& d : in)
    if (d != in[0]) fail(Fault::spec, "add: {} and {} do not fit together", str(in[0]), str(d));
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder&, const GraphNode& n, std::span<const ValueId> dy) {
  return std::vector<ValueId>(n.in.size(), dy[0]);
}

// In the type of the inputs, because the order of additions is part of the result.
void reference(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto y = args.out[0].as<T>();
    std::vector<std::span<const T>> in;
    for (const TensorView& x : args.in) in.push_back(x.as<const T>());
    for (size_t i = 0; i < y.size(); ++i) {
      T sum = in[0][i];
      for (size_t k = 1; k < in.size(); ++k) sum += in[k][i];
      y[i] = sum;
    }
  });
}

double flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return static_cast<double>(in.size() - 1) * static_cast<double>(out[0].shape.elements());
}

}  // namespace

Operators add() {
  return {{.name = "add",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .flops = flops,
           .layouts = Layouts::any}};
}

}  // namespace dpt::operators
