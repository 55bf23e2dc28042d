// The GPU implementations of group, instance and layer normalization, cuDNN's or own kernels, and
// of RMS norm.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/norms.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

bool is_layer(const KernelQuery& q) {
  return q.op == "layer_norm" || q.op == "layer_norm_input_gradient" ||
         q.op == "layer_norm_weight_gradient" || q.op == "layer_norm_backward";
}
bool is_backward(const KernelQuery& q) { return op(q.op).backward; }

double eps_of(const KernelQuery& q) {
  return is_layer(q) ? settings<LayerNorm>(q).eps : settings<GroupNorm>(q).eps;
}

// Group norm; layer norm over the last dimensions is group norm with one group.
Groups groups_of(const KernelQuery& q, const TensorDesc& x, int64_t rows) {
  if (is_layer(q))
    return {.samples = rows,
            .groups = 1,
            .channels = count(x) / std::max<int64_t>(1, rows),
            .positions = 1,
            .last = true};
  const int64_t groups = settings<GroupNorm>(q).groups;
  const Rows r = channels_of(x);
  const int64_t positions = count(x) / std::max<int64_t>(1, x.shape[0] * x.shape[1]);
  return {.samples = x.shape[0],
          .groups = groups,
          .channels = x.shape[1] / groups,
          .positions = positions,
          .last = r.inner == 1};
}

std::unique_ptr<Kernel> group_norm(const KernelQuery& q) {
  const Groups g = groups_of(q, q.in[0], count(q.out[1]));
  const double eps = eps_of(q);
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           GroupNormalise<float>{.g = g,
                                 .x = at<float>(a.in[0]),
                                 .w = at_or_null<float>(a.in, 1),
                                 .b = at_or_null<float>(a.in, 2),
                                 .y = at<float>(a.out[0]),
                                 .mean = at<float>(a.out[1]),
                                 .rstd = at<float>(a.out[2]),
                                 .eps = eps},
           g.rows());
  });
}

std::unique_ptr<Kernel> group_gradient(const KernelQuery& q) {
  const Groups g = groups_of(q, q.in[0], count(q.in[2]));
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           GroupGradient<float>{.g = g,
                                .dy = at<float>(a.in[0]),
                                .x = at<float>(a.in[1]),
                                .mean = at<float>(a.in[2]),
                                .rstd = at<float>(a.in[3]),
                                .w = at_or_null<float>(a.in, 4),
                                .dx = at<float>(a.out[0])},
           g.rows());
  });
}

std::unique_ptr<Kernel> group_weight_gradient(const KernelQuery& q) {
  Groups g = groups_of(q, q.in[0], count(q.in[2]));
  if (is_layer(q)) g.channels = count(q.out[0]);  // also correct without rows
  const ColumnPlan plan(g.samples * g.positions, g.parameters());
  DeviceContext::current().reserve(plan.bytes(2));
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    sum_columns<GroupWeightTerms<float>, float>(c, plan,
                                                {.g = g,
                                                 .dy = at<float>(a.in[0]),
                                                 .x = at<float>(a.in[1]),
                                                 .mean = at<float>(a.in[2]),
                                                 .rstd = at<float>(a.in[3])},
                                                {at<float>(a.out[0]), at<float>(a.out[1])});
  });
}

// Both gradients, one after the other.
std::unique_ptr<Kernel> gradients(const KernelQuery& q) {
  const std::string norm(q.op.substr(0, q.op.rfind("_backward")));
  const std::string to_weights = norm + "_weight_gradient", to_input = norm + "_input_gradient";
  KernelQuery weights = q, input = q;
  weights.op = to_weights, input.op = to_input;
  weights.in.pop_back();
  weights.out.erase(weights.out.begin());
  input.out.resize(1);
  return call([of_weights = std::shared_ptr(group_weight_gradient(weights)),
               of_input = std::shared_ptr(group_gradient(input))](const KernelArgs& a) {
    of_weights->run({.in = a.in.first(4), .out = a.out.subspan(1), .context = a.context});
    of_input->run({.in = a.in, .out = a.out.first(1), .context = a.context});
  });
}

// RMS norm over the last dimensions is layer norm without a mean.
Groups rms_groups(const TensorDesc& x, int64_t rows) {
  return {.samples = rows,
          .groups = 1,
          .channels = count(x) / std::max<int64_t>(1, rows),
          .positions = 1,
          .last = true};
}

std::unique_ptr<Kernel> rms_norm(const KernelQuery& q) {
  const Groups g = rms_groups(q.in[0], count(q.out[1]));
  return enqueue([g, eps = settings<RmsNorm>(q).eps](const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           GroupNormalise<float>{.g = g,
                                 .x = at<float>(a.in[0]),
                                 .w = at_or_null<float>(a.in, 1),
                                 .b = nullptr,
                                 .y = at<float>(a.out[0]),
                                 .mean = nullptr,
                                 .rstd = at<float>(a.out[1]),
                                 .eps = eps},
           g.rows());
  });
}

std::unique_ptr<Kernel> rms_input_gradient(const KernelQuery& q) {
  const Groups g = rms_groups(q.in[0], count(q.in[2]));
  return enqueue([g](const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           GroupGradient<float>{.g = g,
                                .dy = at<float>(a.in[0]),
                                .x = at<float>(a.in[1]),
                                .mean = nullptr,
                                .rstd = at<float>(a.in[2]),
                                .w = at_or_null<float>(a.in, 3),
                                .dx = at<float>(a.out[0])},
           g.rows());
  });
}

std::unique_ptr<Kernel> rms_weight_gradient(const KernelQuery& q) {
  const int64_t rows = count(q.in[2]), columns = count(q.out[0]);
  const ColumnPlan plan(rows, columns);
  DeviceContext::current().reserve(plan.bytes(1));
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    sum_columns<RmsWeightTerms<float>, float>(c, plan,
                                              {.rows = rows,
                                               .columns = columns,
                                               .dy = at<float>(a.in[0]),
                                               .x = at<float>(a.in[1]),
                                               .rstd = at<float>(a.in[2])},
                                              {at<float>(a.out[0])});
  });
}

DnnNorm norm_of(const KernelQuery& q) {
  DnnNorm n{.kind = is_layer(q) ? NormKind::layer : NormKind::instance,
            .pass = is_backward(q) ? DnnPass::backward : DnnPass::forward,
            .x = q.in[0].shape,
            .type = q.in[0].dtype};
  if (!is_backward(q)) n.eps = eps_of(q);
  if (is_layer(q)) {
    const int64_t rows = count(q.out.size() > 1 && !is_backward(q) ? q.out[1] : q.in[2]);
    n.x = {rows, count(q.in[0]) / std::max<int64_t>(1, rows), 1, 1};
  } else {
    n.x = with_height(n.x);
  }
  return n;
}

std::string library_refuses(const KernelQuery& q) {
  if (std::string reason = not_f32(q); !reason.empty()) return reason;
  const TensorDesc& x = q.in[0];
  if (count(x) == 0) return "it takes no empty tensors";
  if (q.in.size() < (is_backward(q) ? 5U : 3U)) return "it takes a weight and a bias";
  if (is_layer(q)) return "";
  if (settings<GroupNorm>(q).groups != x.shape[1]) return "it takes one channel in each group";
  if (x.shape.rank() < 3) return "it takes images";
  return same_order(x.shape, x.layout, Layout::channels_last) ? ""
                                                              : "it takes images channels_last";
}

std::unique_ptr<Kernel> library(const KernelQuery& q) {
  DeviceContext& context = DeviceContext::current();
  const DeviceContext::Prepared prepared = context.prepared(norm_of(q));
  const bool backward = is_backward(q);
  if (!prepared.work) {
    context.fall_back(prepared.why + "; dptrain's own kernels compute it");
    return backward ? gradients(q) : group_norm(q);
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

std::vector<KernelType> group_norm_rows() {
  return {{.op = "layer_norm", .name = "cudnn", .refuses = library_refuses, .prepare = library},
          own("layer_norm", not_f32, group_norm),
          own("layer_norm_input_gradient", not_f32, group_gradient),
          own("layer_norm_weight_gradient", not_f32, group_weight_gradient),
          {.op = "layer_norm_backward",
           .name = "cudnn",
           .refuses = library_refuses,
           .prepare = library},
          own("layer_norm_backward", not_f32, gradients),
          own("rms_norm", not_f32, rms_norm),
          own("rms_norm_input_gradient", not_f32, rms_input_gradient),
          own("rms_norm_weight_gradient", not_f32, rms_weight_gradient),
          {.op = "group_norm", .name = "cudnn", .refuses = library_refuses, .prepare = library},
          own("group_norm", not_f32, group_norm),
          own("group_norm_input_gradient", not_f32, group_gradient),
          own("group_norm_weight_gradient", not_f32, group_weight_gradient),
          {.op = "group_norm_backward",
           .name = "cudnn",
           .refuses = library_refuses,
           .prepare = library},
          own("group_norm_backward", not_f32, gradients)};
}

}  // namespace dpt::cuda
