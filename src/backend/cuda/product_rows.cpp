// The rows of matrix products: cuBLASLt's, and own ones for what it refuses.
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/products.h"
#include "backend/cuda/support.h"

namespace dpt::cuda {
namespace {

// A node as a product of two matrices: which input is which, how both lie, and what else is made.
struct Operands {
  Matmul m;
  size_t a = 0, b = 1;
  bool bias = false, relu = false, sums = false;
  Epilogue epilogue() const {
    if (sums) return a == 0 ? Epilogue::sums_of_a : Epilogue::none;
    if (relu) return bias ? Epilogue::bias_relu : Epilogue::relu;
    return bias ? Epilogue::bias : Epilogue::none;
  }
};

int64_t rows_of(const Shape& s) { return s.with(s.rank() - 1, 1).elements(); }

bool transposed(const TensorDesc& d) { return !same_order(d.shape, d.layout, Layout::plain); }

Operands operands_of(const KernelQuery& q) {
  Operands o;
  o.m.in = q.in[0].dtype;
  o.m.out = q.out[0].dtype;
  if (q.op.ends_with("gradient")) {  // dy^T x, or x^T dy
    o.sums = q.out.size() > 1;
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
  o.m.transpose_b = (q.op != "matmul") != transposed(q.in[1]);
  o.bias = q.in.size() > 2;
  o.relu = q.op == "linear_relu";
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

// The sums of dy's rows.
AfterKernel sums_of(const KernelQuery& q) {
  const Rows rows{q.in[0].shape.back(), 1, count(q.in[0])};
  const ColumnPlan plan(rows_of(q.in[0].shape), rows.columns);
  DeviceContext::current().reserve(plan.bytes(1));
  return with_number(q.in[0].dtype, [&]<class T>(T) -> AfterKernel {
    return [=](const KernelArgs& a, DeviceContext& c) {
      sum_columns<ColumnTerm<T>, float>(c, plan, {rows, at<T>(a.in[0])}, {at<float>(a.out[1])});
    };
  });
}

// What a product without epilogue leaves to do.
AfterKernel rest_of(const Operands& o, const KernelQuery& q) {
  if (o.relu) return clip_result(q);
  if (o.sums) return sums_of(q);
  return [](const KernelArgs&, DeviceContext&) {};
}

std::unique_ptr<Kernel> product(const KernelQuery& q) {
  const Operands o = operands_of(q);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    const auto to = [&]<class To>(To) {
      return enqueue([o, rest = rest_of(o, q)](const KernelArgs& a, DeviceContext& c) {
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
        rest(a, c);
      });
    };
    return q.out[0].dtype == DType::f32 ? to(float{}) : to(T{});
  });
}

// With all that the node makes as an epilogue, or without where cuBLASLt has no such algorithm.
std::unique_ptr<Kernel> library(const KernelQuery& q) {
  Operands o = operands_of(q);
  DeviceContext& context = DeviceContext::current();
  o.m.tf32 = context.tf32;
  o.m.epilogue = o.epilogue();
  AfterKernel rest = [](const KernelArgs&, DeviceContext&) {};
  DeviceContext::Prepared prepared = context.prepared(o.m);
  if (!prepared.work || (o.sums && o.m.epilogue == Epilogue::none)) {
    o.m.epilogue = o.bias ? Epilogue::bias : Epilogue::none;
    prepared = context.prepared(o.m);
    if (!prepared.work) {
      context.note(prepared.why + "; dptrain's own kernel computes it, far slower");
      return product(q);
    }
    rest = rest_of(o, q);
  }
  return enqueue([o, rest, work = prepared.work](const KernelArgs& a, DeviceContext& c) {
    std::array<std::byte*, 4> tensors = {a.in[o.a].data, a.in[o.b].data, a.out[0].data};
    const bool vector = has_vector(o.m.epilogue);
    if (vector) tensors[3] = o.bias ? a.in[2].data : a.out[1].data;
    c.stream.run(*work, std::span(tensors).first(vector ? 4 : 3), c.workspace);
    rest(a, c);
  });
}

}  // namespace

std::vector<KernelType> product_rows() {
  std::vector<KernelType> out;
  for (std::string_view op : {"linear", "linear_relu", "matmul", "linear_weight_gradient",
                              "linear_weight_bias_gradient"}) {
    out.push_back({op, "cublaslt", library_refuses, library});
    out.push_back(own(op, refuses, product));
  }
  return out;
}

}  // namespace dpt::cuda
