// The GPU implementations of norms of rows: cuDNN's of layer and instance norm, and own kernels.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/norms.h"
#include "graph/norm_rows.h"

namespace dpt::cuda {
namespace {

std::unique_ptr<Kernel> row_norm(const KernelQuery& q) {
  const auto s = settings<RowNorm>(q);
  const formula::NormRows rows = norm_rows(s, q.in[0]);
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           RowNormalise<float>{.g = rows,
                               .x = at<float>(a.in[0]),
                               .w = at_or_null<float>(a.in, 1),
                               .b = at_or_null<float>(a.in, 2),
                               .y = at<float>(a.out[0]),
                               .mean = s.center ? at<float>(a.out[1]) : nullptr,
                               .rstd = at<float>(a.out.back()),
                               .eps = s.eps},
           rows_of(rows));
  });
}

std::unique_ptr<Kernel> input_gradient(const KernelQuery& q) {
  const auto s = settings<RowNorm>(q);
  const formula::NormRows rows = norm_rows(s, q.in[1]);
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    const size_t rstd = s.center ? 3 : 2;
    launch(c.stream,
           RowNormGradient<float>{.g = rows,
                                  .dy = at<float>(a.in[0]),
                                  .x = at<float>(a.in[1]),
                                  .mean = s.center ? at<float>(a.in[2]) : nullptr,
                                  .rstd = at<float>(a.in[rstd]),
                                  .w = at_or_null<float>(a.in, rstd + 1),
                                  .dx = at<float>(a.out[0])},
           rows_of(rows));
  });
}

template <bool kCenter>
std::unique_ptr<Kernel> weight_sums(const KernelQuery& q) {
  const formula::NormRows rows = norm_rows(settings<RowNorm>(q), q.in[1]);
  const ColumnPlan plan(rows.samples * rows.positions, weights_of(rows));
  using Terms = RowNormWeightTerms<float, kCenter>;
  DeviceContext::current().reserve(plan.bytes(Terms::kTerms));
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    const Terms terms{.g = rows,
                      .dy = at<float>(a.in[0]),
                      .x = at<float>(a.in[1]),
                      .mean = kCenter ? at<float>(a.in[2]) : nullptr,
                      .rstd = at<float>(a.in[kCenter ? 3 : 2])};
    if constexpr (kCenter)
      sum_columns<Terms, float>(c, plan, terms, {at<float>(a.out[0]), at<float>(a.out[1])});
    else
      sum_columns<Terms, float>(c, plan, terms, {at<float>(a.out[0])});
  });
}

std::unique_ptr<Kernel> weight_gradient(const KernelQuery& q) {
  return settings<RowNorm>(q).center ? weight_sums<true>(q) : weight_sums<false>(q);
}

// Both gradients, one after the other.
std::unique_ptr<Kernel> gradients(const KernelQuery& q) {
  const RowNormNames& names = names_of(settings<RowNorm>(q));
  KernelQuery weights = q, input = q;
  weights.op = names.weight_gradient, input.op = names.input_gradient;
  weights.in.pop_back();
  weights.out.erase(weights.out.begin());
  input.out.resize(1);
  return call([of_weights = std::shared_ptr(weight_gradient(weights)),
               of_input = std::shared_ptr(input_gradient(input))](const KernelArgs& a) {
    of_weights->run({.in = a.in.first(4), .out = a.out.subspan(1), .context = a.context});
    of_input->run({.in = a.in, .out = a.out.first(1), .context = a.context});
  });
}

DnnNorm norm_of(const KernelQuery& q) {
  const auto s = settings<RowNorm>(q);
  const formula::NormRows rows = norm_rows(s, q.in[0]);
  const bool layer = s.groups == 0;
  DnnNorm n{.kind = layer ? NormKind::layer : NormKind::instance,
            .pass = is_gradient(q) ? DnnPass::backward : DnnPass::forward,
            .x = layer ? Shape{rows.samples, rows.channels, 1, 1} : with_height(q.in[0].shape),
            .type = q.in[0].dtype};
  if (!is_gradient(q)) n.eps = s.eps;
  return n;
}

std::string library_refuses(const KernelQuery& q) {
  if (std::string reason = not_f32(q); !reason.empty()) return reason;
  const TensorDesc& x = q.in[0];
  if (count(x) == 0) return "it takes no empty tensors";
  if (q.in.size() < (is_gradient(q) ? 5U : 3U)) return "it takes a weight and a bias";
  const int64_t groups = settings<RowNorm>(q).groups;
  if (groups == 0) return "";
  if (groups != x.shape[1]) return "it takes one channel in each group";
  if (x.shape.rank() < 3) return "it takes images";
  return same_order(x.shape, x.layout, Layout::channels_last) ? ""
                                                              : "it takes images channels_last";
}

std::unique_ptr<Kernel> library(const KernelQuery& q) {
  DeviceContext& context = DeviceContext::current();
  const DeviceContext::Prepared prepared = context.prepared(norm_of(q));
  const bool backward = is_gradient(q);
  if (!prepared.work) {
    context.fall_back(prepared.why + "; dptrain's own kernels compute it");
    return backward ? gradients(q) : row_norm(q);
  }
  return enqueue([=, work = prepared.work](const KernelArgs& a, DeviceContext& c) {
    const auto in = [&](size_t i) { return a.in[i].data; };
    const auto out = [&](size_t i) { return a.out[i].data; };
    const std::array<std::byte*, 6> forward_tensors = {in(0), in(1), in(2), out(0), out(1), out(2)};
    if (!backward) return c.stream.run(*work, forward_tensors, c.workspace);
    const std::array<std::byte*, 8> tensors = {in(0), in(1),  in(4),  in(2),
                                               in(3), out(0), out(1), out(2)};
    c.stream.run(*work, tensors, c.workspace);
  });
}

}  // namespace

std::vector<KernelType> row_norm_rows() {
  std::vector<KernelType> out;
  for (const RowNormNames& n : kRowNorms) {
    const auto add = [&](std::string_view op,
                         std::unique_ptr<Kernel> (*prepare)(const KernelQuery&), bool of_library) {
      if (of_library)
        out.push_back({.op = op, .name = "cudnn", .refuses = library_refuses, .prepare = library});
      out.push_back(own(op, not_f32, prepare));
    };
    const bool of_library = !n.backward.empty();
    add(n.norm, row_norm, of_library);
    add(n.input_gradient, input_gradient, false);
    add(n.weight_gradient, weight_gradient, false);
    if (of_library) add(n.backward, gradients, true);
  }
  return out;
}

}  // namespace dpt::cuda
