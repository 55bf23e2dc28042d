// The rows of matrix products: cuBLASLt's, and own ones for what it refuses.
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/products.h"
#include "backend/cuda/support.h"

namespace dpt::cuda {
namespace {

// A node as a product of two matrices: which input is which, and how both lie.
struct Operands {
  Matmul m;
  size_t a = 0, b = 1;
  bool bias = false;
};

int64_t rows_of(const Shape& s) { return s.with(s.rank() - 1, 1).elements(); }

bool transposed(const TensorDesc& d) { return !same_order(d.shape, d.layout, Layout::plain); }

Operands operands_of(const KernelQuery& q) {
  Operands o;
  o.m.in = q.in[0].dtype;
  o.m.out = q.out[0].dtype;
  if (q.op == "linear_weight_gradient") {  // dy^T x, or x^T dy
    if (transposed(q.out[0])) std::swap(o.a, o.b);
    o.m.m = q.in[o.a].shape.back();
    o.m.n = q.in[o.b].shape.back();
    o.m.k = rows_of(q.in[0].shape);
    o.m.transpose_a = true;
    return o;
  }
  o.m.m = rows_of(q.in[0].shape);
  o.m.k = q.in[0].shape.back();
  o.m.n = q.out[0].shape.back();
  o.m.transpose_b = (q.op == "linear") != transposed(q.in[1]);
  o.bias = q.in.size() > 2;
  if (o.bias) o.m.epilogue = Epilogue::bias;
  return o;
}

std::string refuses(const KernelQuery& q) {
  for (const TensorDesc& d : q.in)
    if (d.dtype != q.in[0].dtype)
      return fmt::format("it takes one type, not {} and {}", name_of(q.in[0].dtype),
                         name_of(d.dtype));
  const DType out = q.out[0].dtype;
  return out == DType::f32 || out == q.in[0].dtype
             ? ""
             : fmt::format("it makes no {} of {}", name_of(out), name_of(q.in[0].dtype));
}

std::string library_refuses(const KernelQuery& q) {
  const Operands o = operands_of(q);
  if (o.m.m == 0 || o.m.n == 0 || o.m.k == 0) return "it takes no empty matrices";
  return refuses(q);
}

std::unique_ptr<Kernel> library(const KernelQuery& q) {
  Operands o = operands_of(q);
  DeviceContext& context = DeviceContext::current();
  o.m.tf32 = context.tf32;
  std::shared_ptr<DeviceWork> work = context.api.prepare(o.m);
  context.reserve(work->workspace_bytes());
  return enqueue([o, work](const KernelArgs& a, DeviceContext& c) {
    const std::array<std::byte*, 4> tensors = {a.in[o.a].data, a.in[o.b].data, a.out[0].data,
                                               o.bias ? a.in[2].data : nullptr};
    c.stream.run(*work, std::span(tensors).first(o.bias ? 4 : 3), c.workspace);
  });
}

std::unique_ptr<Kernel> product(const KernelQuery& q) {
  const Operands o = operands_of(q);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    const auto to = [&]<class To>(To) {
      return enqueue([o](const KernelArgs& a, DeviceContext& c) {
        const Matmul& m = o.m;
        const Product<T, To> p{at<T>(a.in[o.a]),
                               at<T>(a.in[o.b]),
                               o.bias ? at<T>(a.in[2]) : nullptr,
                               at<To>(a.out[0]),
                               m.m,
                               m.n,
                               m.k,
                               m.transpose_a ? 1 : m.k,
                               m.transpose_a ? m.m : 1,
                               m.transpose_b ? 1 : m.n,
                               m.transpose_b ? m.k : 1};
        launch(c.stream, p, p.blocks());
      });
    };
    return q.out[0].dtype == DType::f32 ? to(float{}) : to(T{});
  });
}

}  // namespace

std::vector<KernelType> product_rows() {
  std::vector<KernelType> out;
  for (std::string_view op : {"linear", "matmul", "linear_weight_gradient"}) {
    out.push_back({op, "cublaslt", library_refuses, library});
    out.push_back(own(op, refuses, product));
  }
  return out;
}

}  // namespace dpt::cuda
