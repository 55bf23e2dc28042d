// linear: y[..., O] = x[..., I] w[O, I]^T, plus the optional b[O]. matmul: y[..., O] = x[..., I]
// w[I, O], plus the optional b[O]. Each is the input gradient of the other.
//   linear_weight_gradient(dy, x) -> dw[O, I] = dy[..., O]^T x[..., I], with "..." as rows
//   sum_rows(dy) -> db[O]: the sum of all rows of dy[..., O]
//   linear_weight_bias_gradient(dy, x) -> dw, db: both in one pass, by graph/passes/fuse.cpp
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

// The product of all extents but the last, any of which may be 0.
int64_t rows_of(const Shape& s) { return s.with(s.rank() - 1, 1).elements(); }

Shape with_last(const Shape& s, int64_t extent) { return s.with(s.rank() - 1, extent); }

// Shape rule of x and w. of_x, of_y: the dimensions of w that match the last dimensions of x and y.
std::vector<TensorDesc> infer_product(std::string_view op, std::span<const TensorDesc> in, int of_x,
                                      int of_y) {
  need_real(op, in[0]);
  const Shape &x = in[0].shape, &w = in[1].shape;
  if (x.rank() < 2 || w.rank() != 2 || x.back() != w[of_x])
    fail(Fault::spec, "{}: input {} does not fit weight {}", op, x.str(), w.str());
  if (in.size() > 2 && in[2].shape != Shape{w[of_y]})
    fail(Fault::spec, "{}: bias {} does not fit weight {}", op, in[2].shape.str(), w.str());
  return {{in[0].dtype, with_last(x, w[of_y])}};
}

std::vector<TensorDesc> infer_linear(std::span<const TensorDesc> in) {
  return infer_product("linear", in, 1, 0);
}

std::vector<TensorDesc> infer_matmul(std::span<const TensorDesc> in) {
  return infer_product("matmul", in, 0, 1);
}

std::vector<TensorDesc> infer_weight(std::span<const TensorDesc> in) {
  const Shape &dy = in[0].shape, &x = in[1].shape;
  if (dy.rank() < 2 || x.rank() < 2 || x != with_last(dy, x.back()))
    fail(Fault::spec, "linear_weight_gradient: {} does not fit input {}", dy.str(), x.str());
  return {{full(in[0].dtype), {dy.back(), x.back()}}};
}

std::vector<TensorDesc> infer_weight_bias(std::span<const TensorDesc> in) {
  return {infer_weight(in)[0], {full(in[0].dtype), {in[0].shape.back()}}};
}

std::vector<TensorDesc> infer_sum(std::span<const TensorDesc> in) {
  return {{full(in[0].dtype), {in[0].shape.back()}}};
}

// Of linear, or of matmul, whose weight is the transposed one.
template <bool kLinear>
std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const ValueId x = n.in[0], w = n.in[1];
  std::vector<ValueId> out = {g.apply(kLinear ? "matmul" : "linear", {dy[0], w}),
                              kLinear ? g.apply("linear_weight_gradient", {dy[0], x})
                                      : g.apply("linear_weight_gradient", {x, dy[0]})};
  if (n.in.size() > 2) out.push_back(g.apply("sum_rows", {dy[0]}));
  return out;
}

// c[m, n] = sum over k of a(m, k) * b(k, n), plus bias(n).
template <class A, class B, class Bias, class T>
void multiply(int64_t rows, int64_t columns, int64_t depth, A a, B b, Bias bias, std::span<T> c) {
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      double sum = bias(n);
      for (int64_t k = 0; k < depth; ++k)
        sum += static_cast<double>(a(m, k)) * static_cast<double>(b(k, n));
      c[m * columns + n] = static_cast<T>(sum);
    }
}

double no_bias(int64_t) { return 0; }

// k_first: w is [k, n], otherwise [n, k].
template <class T>
void product(const KernelArgs& args, bool k_first) {
  const auto steps = strides_of(args.in[1].desc.shape, args.in[1].desc.layout);
  const int64_t by_k = steps[k_first ? 0 : 1], by_n = steps[k_first ? 1 : 0];
  const auto x = args.in[0].as<const T>(), w = args.in[1].as<const T>();
  const auto b = args.in.size() > 2 ? args.in[2].as<const T>() : std::span<const T>{};
  const int64_t ins = args.in[0].desc.shape.back(), outs = args.out[0].desc.shape.back();
  multiply(
      rows_of(args.in[0].desc.shape), outs, ins,
      [&](int64_t m, int64_t k) { return x[m * ins + k]; },
      [&](int64_t k, int64_t n) { return w[k * by_k + n * by_n]; },
      [&](int64_t n) { return b.empty() ? 0 : static_cast<double>(b[n]); }, args.out[0].as<T>());
}

void linear_forward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) { product<T>(args, false); });
}

void matmul_forward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) { product<T>(args, true); });
}

void weight_gradient(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const int64_t outs = args.in[0].desc.shape.back(), ins = args.in[1].desc.shape.back();
    const int64_t depth = rows_of(args.in[0].desc.shape);
    // A transposed dw is stored as x^T dy.
    const bool transposed = args.out[0].desc.layout == Layout::transposed;
    const auto &left = transposed ? x : dy, &right = transposed ? dy : x;
    const int64_t rows = transposed ? ins : outs, columns = transposed ? outs : ins;
    multiply(
        rows, columns, depth, [&](int64_t m, int64_t k) { return left[k * rows + m]; },
        [&](int64_t k, int64_t n) { return right[k * columns + n]; }, no_bias, args.out[0].as<T>());
  });
}

void sum(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const int64_t columns = args.in[0].desc.shape.back();
    multiply(
        1, columns, rows_of(args.in[0].desc.shape), [](int64_t, int64_t) { return 1.0; },
        [&](int64_t k, int64_t n) { return dy[k * columns + n]; }, no_bias, args.out[0].as<T>());
  });
}

void weight_bias_gradient(const KernelArgs& args) {
  weight_gradient({args.in, args.out.first(1)});
  sum({args.in.first(1), args.out.subspan(1)});
}

// Two operations per product.
double flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return 2.0 * static_cast<double>(out[0].shape.elements()) *
         static_cast<double>(in[0].shape.back());
}

double weight_flops(std::span<const TensorDesc> in, std::span<const TensorDesc>) {
  return 2.0 * static_cast<double>(in[0].shape.elements()) *
         static_cast<double>(in[1].shape.back());
}

}  // namespace

Operators linear() {
  return {{.name = "linear",
           .precision = Precision::compute,
           .infer = typed<infer_linear>,
           .gradient = gradient<true>,
           .reference = typed<linear_forward>,
           .flops = flops,
           .torch_order = TorchOrder::of_sequence_first,
           .weight = {.index = 1}},
          {.name = "matmul",
           .precision = Precision::compute,
           .infer = typed<infer_matmul>,
           .gradient = gradient<false>,
           .reference = typed<matmul_forward>,
           .flops = flops},
          {.name = "linear_weight_gradient",
           .precision = Precision::compute,
           .infer = typed<infer_weight>,
           .reference = typed<weight_gradient>,
           .flops = weight_flops,
           .weight = {.index = 2, .factor = 1},
           .traits = Trait::backward},
          {.name = "linear_weight_bias_gradient",
           .precision = Precision::compute,
           .infer = typed<infer_weight_bias>,
           .reference = typed<weight_bias_gradient>,
           .flops = weight_flops,
           .weight = {.index = 2, .factor = 1},
           .traits = Trait::backward},
          {.name = "sum_rows",
           .precision = Precision::follow,
           .infer = typed<infer_sum>,
           .reference = typed<sum>,
           .flops = elements_of_first_input}};
}

}  // namespace dpt::operators
