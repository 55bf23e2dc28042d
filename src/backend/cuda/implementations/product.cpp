// The GPU implementations of matrix products: cuBLASLt's, own kernels for what it refuses.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/products.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

// A node as a matrix product: which inputs are the operands, how they are stored, and what else the
// node computes.
struct Operands {
  Matmul m;
  size_t a = 0, b = 1;
  bool bias = false, relu = false, mask = false, sums = false, relu_gradient = false;

  Epilogue plain() const { return bias ? Epilogue::bias : Epilogue::none; }
  // The epilogues that compute all that the node does, or most of it, best first.
  std::vector<Epilogue> epilogues() const {
    std::vector<Epilogue> out;
    if (mask) out.push_back(with_mask(bias));
    if (relu) out.push_back(bias ? Epilogue::bias_relu : Epilogue::relu);
    if (relu_gradient) out.push_back(Epilogue::relu_gradient);
    if (sums && a == 0) out.push_back(Epilogue::sums_of_a);
    out.push_back(plain());
    return out;
  }
  static Epilogue with_mask(bool bias) {
    return bias ? Epilogue::bias_relu_mask : Epilogue::relu_mask;
  }
};

int64_t rows_of(const Shape& s) { return s.with(s.rank() - 1, 1).elements(); }

bool transposed(const TensorDesc& d) { return !same_order(d.shape, d.layout, Layout::plain); }

// dy^T x, or x^T dy.
Operands weight_gradient(const KernelQuery& q) {
  Operands o;
  o.m.in = q.in[0].dtype;
  o.m.out = q.out[0].dtype;
  o.sums = q.out.size() > 1;
  if (transposed(q.out[0])) std::swap(o.a, o.b);
  o.m.m = q.in[o.a].shape.back();
  o.m.n = q.in[o.b].shape.back();
  o.m.k = rows_of(q.in[0].shape);
  o.m.transpose_a = true;
  return o;
}

// What a kernel does after the product.
enum class Then { nothing, relu, relu_mask, relu_gradient };

template <bool kLinear, Then kThen>
Operands forward(const KernelQuery& q) {
  Operands o;
  o.m.in = q.in[0].dtype;
  o.m.out = q.out[0].dtype;
  o.m.m = rows_of(q.in[0].shape);
  o.m.k = q.in[0].shape.back();
  o.m.n = q.out[0].shape.back();
  o.m.transpose_b = kLinear != transposed(q.in[1]);
  o.relu_gradient = kThen == Then::relu_gradient;
  o.bias = q.in.size() > 2 && !o.relu_gradient;
  o.mask = kThen == Then::relu_mask;
  o.relu = o.mask || kThen == Then::relu;
  return o;
}

// The product that made the mask for this gradient of relu.
Matmul maker_of_mask(const KernelQuery& q, const Matmul& gradient) {
  const auto s = settings<ReluMask>(q);
  Matmul out = gradient;
  out.k = s.depth;
  out.transpose_b = true;
  out.epilogue = Operands::with_mask(s.bias);
  return out;
}

std::string refuses(const KernelQuery& q) {
  for (const TensorDesc& d : q.in)
    if (d.dtype != q.in[0].dtype && d.dtype != DType::u8)
      return fmt::format("it takes one type, not {} and {}", name_of(q.in[0].dtype),
                         name_of(d.dtype));
  const DType out = q.out[0].dtype;
  return out == DType::f32 || out == q.in[0].dtype
             ? ""
             : fmt::format("it cannot produce {} from {}", name_of(out), name_of(q.in[0].dtype));
}

std::string library_refuses(const KernelQuery& q) {
  for (const TensorDesc& d : {q.in[0], q.in[1], q.out[0]})
    if (count(d) == 0) return "it takes no empty matrices";
  return refuses(q);
}

// Computes the sums of dy's rows: the bias gradient.
AfterKernel sums_of(const KernelQuery& q) {
  const Rows rows{.columns = q.in[0].shape.back(), .inner = 1, .elements = count(q.in[0])};
  const ColumnPlan plan(rows_of(q.in[0].shape), rows.columns);
  DeviceContext::current().reserve(plan.bytes(1));
  return with_number(q.in[0].dtype, [&]<class T>(T) -> AfterKernel {
    return [=](const KernelArgs& a, DeviceContext& c) {
      sum_columns<ColumnTerm<T>, float>(c, plan, {rows, at<T>(a.in[0])}, {at<float>(a.out[1])});
    };
  });
}

// Applies relu's gradient to the result, by the result of relu.
AfterKernel by_result(const KernelQuery& q) {
  return with_number(q.out[0].dtype, [&]<class T>(T) -> AfterKernel {
    return [n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Map2<Relu, T>{{}, at<T>(a.in[2]), at<T>(a.out[0]), at<T>(a.out[0])}, n);
    };
  });
}

// What remains to be done after a product with this epilogue. If the product made no mask, nothing
// reads it.
AfterKernel rest_of(const Operands& o, const KernelQuery& q, Epilogue made) {
  if (o.relu && !has_relu(made)) return clip_result(q);
  if (o.sums && made != Epilogue::sums_of_a) return sums_of(q);
  if (o.relu_gradient && made != Epilogue::relu_gradient) return by_result(q);
  return [](const KernelArgs&, DeviceContext&) {};
}

std::unique_ptr<Kernel> product(const KernelQuery& q, const Operands& o) {
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    const auto to = [&]<class To>(To) {
      return enqueue([o, rest = rest_of(o, q, o.plain())](const KernelArgs& a, DeviceContext& c) {
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

// True if cuBLASLt has an algorithm for the forward product that makes the mask. The forward node
// asks for the same product, so it gets the same answer.
bool makes_mask(const KernelQuery& q, const Matmul& gradient, DeviceContext& context) {
  const Matmul maker = maker_of_mask(q, gradient);
  return maker.k > 0 && context.prepared(maker).work != nullptr;
}

// Takes the first epilogue for which cuBLASLt has an algorithm; the rest is done by own kernels.
std::unique_ptr<Kernel> library(const KernelQuery& q, Operands o) {
  DeviceContext& context = DeviceContext::current();
  o.m.tf32 = context.tf32;
  DeviceContext::Prepared prepared;
  for (const Epilogue epilogue : o.epilogues()) {
    o.m.epilogue = epilogue;
    if (epilogue == Epilogue::relu_gradient && !makes_mask(q, o.m, context)) continue;
    prepared = context.prepared(o.m);
    if (prepared.work) break;
  }
  if (!prepared.work) {
    context.fall_back(prepared.why + "; dptrain's own kernel computes it, far slower");
    return product(q, o);
  }
  return enqueue([o, rest = rest_of(o, q, o.m.epilogue), work = prepared.work](const KernelArgs& a,
                                                                               DeviceContext& c) {
    std::array<std::byte*, 5> tensors = {a.in[o.a].data, a.in[o.b].data, a.out[0].data};
    size_t n = 3;
    if (has_vector(o.m.epilogue)) tensors[n++] = o.bias ? a.in[2].data : a.out[1].data;
    if (has_mask(o.m.epilogue)) tensors[n++] = o.mask ? a.out[1].data : a.in[3].data;
    c.stream.run(*work, std::span(tensors).first(n), c.workspace);
    rest(a, c);
  });
}

template <Operands (*kOperands)(const KernelQuery&)>
void add_rows(std::vector<KernelType>& out, std::string_view op) {
  out.push_back({.op = op,
                 .name = "cublaslt",
                 .refuses = library_refuses,
                 .prepare = [](const KernelQuery& q) { return library(q, kOperands(q)); }});
  out.push_back(own(op, refuses, [](const KernelQuery& q) { return product(q, kOperands(q)); }));
}

}  // namespace

std::vector<KernelType> product_rows() {
  std::vector<KernelType> out;
  add_rows<forward<true, Then::nothing>>(out, "linear");
  add_rows<forward<true, Then::relu>>(out, "linear_relu");
  add_rows<forward<true, Then::relu_mask>>(out, "linear_relu_mask");
  add_rows<forward<false, Then::nothing>>(out, "matmul");
  add_rows<forward<false, Then::relu_gradient>>(out, "matmul_relu_gradient");
  add_rows<weight_gradient>(out, "linear_weight_gradient");
  add_rows<weight_gradient>(out, "linear_weight_bias_gradient");
  return out;
}

}  // namespace dpt::cuda
