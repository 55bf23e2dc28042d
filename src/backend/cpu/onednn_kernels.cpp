// Matrix products by oneDNN, for CPUs without hand-written kernels.
#include "backend/cpu/kernels.h"

#if DPT_ONEDNN

#include <unordered_map>

#include <fmt/format.h>

#include "backend/cpu/onednn.h"
#include "backend/cpu/scratch.h"

namespace dpt {
namespace {

using onednn::engine;

std::string refuses(const KernelQuery& q) {
  const std::string own = refuses_tiles(Bf16Products::automatic).empty()
                              ? "dptrain has its own kernels for AMX"
                              : onednn::refuses_bf16_without_amx();
  return onednn::refuses(q, own);
}

// c[m, n] = a[m, k] b[k, n] (+ bias[n]), each operand plain or transposed.
class MatMul : public Kernel {
 public:
  struct Operands {
    int64_t m, n, k;
    bool transpose_a, transpose_b, bias;
    dnnl::memory::data_type type;  // of all
  };

  explicit MatMul(const Operands& o) : stream_(engine()) {
    onednn::use_one_core();
    using dnnl::memory;
    const auto desc = [&](int64_t rows, int64_t columns, bool transposed) {
      return memory::desc({rows, columns}, o.type,
                          transposed ? memory::dims{1, rows} : memory::dims{columns, 1});
    };
    const memory::desc a = desc(o.m, o.k, o.transpose_a), b = desc(o.k, o.n, o.transpose_b),
                       c = desc(o.m, o.n, false), bias = desc(1, o.n, false);
    const dnnl::matmul::primitive_desc chosen(
        o.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c), engine());
    matmul_ = dnnl::matmul(chosen);
    arguments_ = {{DNNL_ARG_SRC, memory(a, engine(), nullptr)},
                  {DNNL_ARG_WEIGHTS, memory(b, engine(), nullptr)},
                  {DNNL_ARG_DST, memory(c, engine(), nullptr)}};
    if (o.bias) arguments_.emplace(DNNL_ARG_BIAS, memory(bias, engine(), nullptr));
  }

  void run(const KernelArgs& a) override {
    onednn::use_one_core();
    arguments_.at(DNNL_ARG_SRC).set_data_handle(a.in[0].data);
    arguments_.at(DNNL_ARG_WEIGHTS).set_data_handle(a.in[1].data);
    arguments_.at(DNNL_ARG_DST).set_data_handle(a.out[0].data);
    if (a.in.size() > 2) arguments_.at(DNNL_ARG_BIAS).set_data_handle(a.in[2].data);
    matmul_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

bool transposed(const TensorDesc& weight) { return weight.layout == Layout::transposed; }

// linear: y = x w^T + b; matmul: y = x w + b.
template <bool kLinear>
std::unique_ptr<Kernel> product(const KernelQuery& q) {
  const Shape& w = q.in[1].shape;
  const int64_t out = w[kLinear ? 0 : 1], in = w[kLinear ? 1 : 0];
  return std::make_unique<MatMul>(MatMul::Operands{.m = q.in[0].shape.elements() / in,
                                                   .n = out,
                                                   .k = in,
                                                   .transpose_a = false,
                                                   .transpose_b = kLinear != transposed(q.in[1]),
                                                   .bias = q.in.size() > 2,
                                                   .type = onednn::type_of(q.in[0])});
}

// dw = dy^T x.
std::unique_ptr<Kernel> weight_gradient(const KernelQuery& q) {
  const int64_t out = q.out[0].shape[0], in = q.out[0].shape[1];
  return std::make_unique<MatMul>(MatMul::Operands{.m = out,
                                                   .n = in,
                                                   .k = q.in[0].shape.elements() / out,
                                                   .transpose_a = true,
                                                   .transpose_b = false,
                                                   .bias = false,
                                                   .type = dnnl::memory::data_type::f32});
}

std::string refuses_weight_gradient(const KernelQuery& q) {
  if (q.in[0].dtype != DType::f32)
    return "it supports f32 inputs only";  // Note [fused gradients] in program.h
  return transposed(q.out[0]) ? "it does not write transposed weights" : refuses(q);
}

}  // namespace

std::vector<KernelType> onednn_kernels() {
  return {{.op = "linear", .name = "onednn", .refuses = refuses, .prepare = product<true>},
          {.op = "matmul", .name = "onednn", .refuses = refuses, .prepare = product<false>},
          {.op = "linear_weight_gradient",
           .name = "onednn",
           .refuses = refuses_weight_gradient,
           .prepare = weight_gradient}};
}

std::string onednn_version() {
  const dnnl_version_t& v = *dnnl_version();
  return fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
}

}  // namespace dpt

#else

namespace dpt {

std::vector<KernelType> onednn_kernels() { return {}; }
std::string onednn_version() { return ""; }

}  // namespace dpt

#endif
