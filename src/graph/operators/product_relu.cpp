// A product and relu in one, which graph/fuse.cpp makes of the two for GPUs, where the libraries
// compute them so, once the graph has its gradients: relu's reads y alone.
//   linear_relu(x, w, [b]) -> y = relu(linear(x, w, [b]))
//   convolution_relu(x, w, [b]) -> y = relu(convolution(x, w, [b]))
#include "graph/activation_formulas.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer_linear(std::span<const TensorDesc> in, const std::any& attrs) {
  return op("linear").infer(in, attrs);
}

std::vector<TensorDesc> infer_convolution(std::span<const TensorDesc> in, const std::any& attrs) {
  return op("convolution").infer(in, attrs);
}

void relu(const TensorView& y) {
  with_type_of(y, [&]<class T>(T) {
    for (T& v : y.as<T>()) v = formula::relu(v);
  });
}

void linear_forward(const KernelArgs& args, const std::any& attrs) {
  op("linear").reference(args, attrs);
  relu(args.out[0]);
}

void convolution_forward(const KernelArgs& args, const std::any& attrs) {
  op("convolution").reference(args, attrs);
  relu(args.out[0]);
}

std::vector<Sample> samples_of(std::string_view product, std::string_view name) {
  std::vector<Sample> out = op(product).samples();
  for (Sample& s : out) s.query.op = name;
  return out;
}

std::vector<Sample> linear_samples() { return samples_of("linear", "linear_relu"); }

std::vector<Sample> convolution_samples() { return samples_of("convolution", "convolution_relu"); }

double linear_flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return op("linear").flops(in, out);
}

double convolution_flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return op("convolution").flops(in, out);
}

}  // namespace

OperatorType linear_relu() {
  return with_weight({"linear_relu", Precision::compute, infer_linear, nullptr, linear_forward,
                      linear_samples, linear_flops},
                     1);
}

OperatorType convolution_relu() {
  return on_images({"convolution_relu", Precision::compute, infer_convolution, nullptr,
                    convolution_forward, convolution_samples, convolution_flops},
                   1);
}

}  // namespace dpt::operators
