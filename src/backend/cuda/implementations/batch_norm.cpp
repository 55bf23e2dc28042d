// The GPU implementations of batch norm with the moments of the batch, and of its gradients:
// cuDNN's, or several own kernels.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/norms.h"
#include "base/fail.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

// The inputs and sizes of a batch norm node.
struct Parts {
  bool add, relu;
  // Index of the weight, and of the running statistics (or the number of inputs).
  size_t weight, running;
  int64_t channels;
  double elements;  // of one channel
  BatchNorm settings;

  explicit Parts(const KernelQuery& q)
      : add(dpt::settings<BatchNorm>(q).add),
        relu(dpt::settings<BatchNorm>(q).relu),
        weight(add ? 2 : 1),
        running(q.in.size() - (q.out.size() > 2 ? 3 : 0)),
        channels(q.in[0].shape[1]),
        elements(static_cast<double>(count(q.in[0])) /
                 static_cast<double>(std::max<int64_t>(1, channels))),
        settings(dpt::settings<BatchNorm>(q)) {}
  size_t weights() const { return running - weight; }
  const float* affine(const KernelArgs& a, size_t i) const {
    return i < weights() ? at<float>(a.in[weight + i]) : nullptr;
  }
  bool runs(const KernelArgs& a) const { return running < a.in.size(); }
  size_t sums_bytes() const { return sizeof(double) * static_cast<size_t>(2 * channels + 1); }
  void update_running(const KernelArgs& a, DeviceContext& c, const double* sums) const {
    launch(c.stream,
           UpdateRunning{.sums = sums,
                         .mean = at<float>(a.in[running]),
                         .variance = at<float>(a.in[running + 1]),
                         .batches = at<int64_t>(a.in[running + 2]),
                         .new_mean = at<float>(a.out[2]),
                         .new_variance = at<float>(a.out[3]),
                         .new_batches = at<int64_t>(a.out[4]),
                         .momentum = settings.momentum,
                         .channels = channels},
           1);
  }
};

std::string refuses(const KernelQuery& q) {
  if (!settings<BatchNorm>(q).training) return "it computes the moments itself";
  const Parts p(q);
  const DType t = q.in[0].dtype;
  if (t != DType::f32 && !is_half(t)) return fmt::format("it takes no {}", name_of(t));
  for (size_t i = 0; i < q.in.size(); ++i)
    if (q.in[i].dtype != (i < p.weight ? t : DType::f32) && q.in[i].dtype != DType::i64)
      return i < p.weight ? "it takes images of one type" : "it takes weights in f32";
  return q.out[0].dtype == t ? "" : "its output must have the type of its input";
}

std::string library_refuses_images(const TensorDesc& x) {
  if (count(x) == 0) return "it takes no empty tensors";
  if (!same_order(x.shape, x.layout, Layout::channels_last)) return "it takes images channels_last";
  const auto together = static_cast<int64_t>(16 / size_of(x.dtype));
  return x.shape[1] % together == 0
             ? ""
             : fmt::format("it takes multiples of {} channels in {}", together, name_of(x.dtype));
}

std::string library_refuses(const KernelQuery& q) {
  if (!settings<BatchNorm>(q).training) return "it computes the moments itself";
  const Parts p(q);
  if (std::string reason = refuses(q); !reason.empty()) return reason;
  if (p.weights() < 2) return "it takes a weight and a bias";
  return library_refuses_images(q.in[0]);
}

std::unique_ptr<Kernel> steps(const KernelQuery& q) {
  const Parts p(q);
  const Rows rows = channels_of(q.in[0]);
  const ColumnPlan plan(rows.elements / std::max<int64_t>(1, p.channels), p.channels);
  const size_t behind = aligned(plan.bytes(2));
  DeviceContext::current().reserve(behind + p.sums_bytes());
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      auto* const sums = reinterpret_cast<double*>(c.workspace + behind);
      auto* const moments = at<double>(a.out[1]);
      sum_columns<MomentTerms<T>, double>(c, plan, {rows, at<T>(a.in[0])},
                                          {sums, sums + p.channels}, p.elements);
      launch(c.stream,
             Moments{.sums = sums, .out = moments, .eps = p.settings.eps, .channels = p.channels},
             p.channels);
      if (p.runs(a)) p.update_running(a, c, sums);
      launch(c.stream,
             Normalise<T>{rows,
                          {moments, p.affine(a, 0), p.affine(a, 1), p.channels},
                          at<T>(a.in[0]),
                          p.add ? at<T>(a.in[1]) : nullptr,
                          at<T>(a.out[0]),
                          p.relu},
             rows.elements);
    });
  });
}

std::unique_ptr<Kernel> library(const KernelQuery& q) {
  const Parts p(q);
  DeviceContext& context = DeviceContext::current();
  const DeviceContext::Prepared prepared = context.prepared(DnnNorm{.x = with_height(q.in[0].shape),
                                                                    .type = q.in[0].dtype,
                                                                    .eps = p.settings.eps,
                                                                    .add = p.add,
                                                                    .relu = p.relu});
  if (!prepared.work) {
    context.fall_back(prepared.why + "; dptrain's own kernels compute it");
    return steps(q);
  }
  const auto channels = static_cast<size_t>(p.channels);
  const size_t means = aligned(prepared.work->workspace_bytes()),
               rstds = means + aligned(channels * sizeof(float)),
               sums = rstds + aligned(channels * sizeof(float));
  context.reserve(sums + p.sums_bytes());
  return enqueue([=, work = prepared.work](const KernelArgs& a, DeviceContext& c) {
    std::byte* const w = c.workspace;
    const std::array<std::byte*, 7> tensors = {
        a.in[0].data, a.in[p.weight].data, a.in[p.weight + 1].data,       a.out[0].data,
        w + means,    w + rstds,           p.add ? a.in[1].data : nullptr};
    c.stream.run(*work, std::span(tensors).first(p.add ? 7 : 6), w);
    auto* const all = p.runs(a) ? reinterpret_cast<double*>(w + sums) : nullptr;
    launch(c.stream,
           SavedMoments{.mean = reinterpret_cast<float*>(w + means),
                        .rstd = reinterpret_cast<float*>(w + rstds),
                        .moments = at<double>(a.out[1]),
                        .sums = all,
                        .eps = p.settings.eps,
                        .elements = p.elements,
                        .channels = p.channels},
           p.channels);
    if (all) p.update_running(a, c, all);
  });
}

// The gradients have the inputs dy, x, moments, w; with relu also y; and optionally a second dy.
bool makes_dr(const KernelQuery& q) { return settings<BatchNorm>(q).add; }
bool behind_relu(const KernelQuery& q) { return settings<BatchNorm>(q).relu; }

std::string gradients_refuse(const KernelQuery& q) {
  const DType t = q.in[0].dtype;
  if (t != DType::f32 && !is_half(t)) return fmt::format("it takes no {}", name_of(t));
  if (q.in[3].dtype != DType::f32) return "it takes weights in f32";
  for (size_t i = 0; i < q.in.size(); ++i)
    if (q.in[i].dtype != t && i != 2 && i != 3) return "it takes images of one type";
  return q.out[0].dtype == t ? "" : "its output must have the type of its input";
}

std::string library_refuses_gradients(const KernelQuery& q) {
  if (std::string reason = gradients_refuse(q); !reason.empty()) return reason;
  return library_refuses_images(q.in[1]);
}

// The own kernel of an operator that is a step of this one.
std::shared_ptr<Kernel> own_kernel(const KernelQuery& q) {
  for (const KernelType& row : cuda_kernels())
    if (row.op == q.op && row.name == "own" && row.refuses(q).empty()) return row.prepare(q);
  fail(Fault::failed, "{} has an own kernel", q.op);
}

// If dr is not a result, it is stored in dx.
std::unique_ptr<Kernel> gradient_steps(const KernelQuery& q) {
  const TensorDesc &dy = q.in[0], &x = q.in[1], &moments = q.in[2], &w = q.in[3];
  const TensorDesc sums{DType::f64, {2 * x.shape[1] + 1}};
  // After relu, dr is computed whether or not it is a result: then the input's gradient needs no y.
  BatchNorm with_dr = settings<BatchNorm>(q), of_dr = with_dr;
  with_dr.add = with_dr.relu;
  of_dr.add = of_dr.relu = false;
  KernelQuery first{"batch_norm_sums", {dy, x, moments}, {sums}, with_dr};
  if (behind_relu(q)) {
    first.in.push_back(q.in[4]);
    if (q.in.size() > 5) first.in.push_back(q.in[5]);
    first.out = {x, sums};
  }
  const auto sum = own_kernel(first);
  const auto to_weights =
      own_kernel({"batch_norm_weight_gradient", {sums, w}, {q.out[1], q.out[2]}, {}});
  const auto to_input =
      own_kernel({"batch_norm_input_gradient", {dy, x, moments, sums, w}, {x}, of_dr});
  const int64_t channels = x.shape[1];
  const ColumnPlan plan(count(x) / std::max<int64_t>(1, channels), channels);
  const size_t behind = aligned(plan.bytes(2));
  DeviceContext::current().reserve(behind + sums.bytes());
  return enqueue(
      [=, relu = behind_relu(q), adds = makes_dr(q)](const KernelArgs& a, DeviceContext& c) {
        const TensorView total{sums, c.workspace + behind};
        TensorView dr = a.in[0];
        if (relu) {
          dr = a.out[adds ? 3 : 0];
          const std::array<TensorView, 5> in = {a.in[0], a.in[1], a.in[2], a.in[4], a.in.back()};
          const std::array<TensorView, 2> out = {dr, total};
          sum->run({std::span(in).first(a.in.size() > 5 ? 5 : 4), out, a.context});
        } else {
          sum->run({a.in.first(3), {&total, 1}, a.context});
        }
        const std::array<TensorView, 2> weights = {total, a.in[3]};
        to_weights->run({weights, a.out.subspan(1, 2), a.context});
        const std::array<TensorView, 5> in = {dr, a.in[1], a.in[2], total, a.in[3]};
        to_input->run({in, a.out.first(1), a.context});
      });
}

std::unique_ptr<Kernel> library_gradients(const KernelQuery& q) {
  DeviceContext& context = DeviceContext::current();
  const DnnNorm n{.pass = DnnPass::backward,
                  .x = with_height(q.in[1].shape),
                  .type = q.in[1].dtype,
                  .add = makes_dr(q),
                  .relu = behind_relu(q),
                  .sum = q.in.size() > 5};
  const DeviceContext::Prepared prepared = context.prepared(n);
  if (!prepared.work) {
    context.fall_back(prepared.why + "; dptrain's own kernels compute it");
    return gradient_steps(q);
  }
  const int64_t channels = q.in[1].shape[1];
  const size_t moments = aligned(prepared.work->workspace_bytes());
  context.reserve(moments + static_cast<size_t>(2 * channels) * sizeof(float));
  return enqueue([=, work = prepared.work](const KernelArgs& a, DeviceContext& c) {
    auto* const mean = reinterpret_cast<float*>(c.workspace + moments);
    auto* const rstd = reinterpret_cast<std::byte*>(mean + channels);
    launch(c.stream, SingleMoments{at<double>(a.in[2]), mean}, 2 * channels);
    std::array<std::byte*, 11> tensors = {a.in[0].data,          a.in[1].data, a.in[3].data,
                                          c.workspace + moments, rstd,         a.out[0].data,
                                          a.out[1].data,         a.out[2].data};
    size_t i = 8;
    if (n.relu) tensors[i++] = a.in[4].data;
    if (n.add) tensors[i++] = a.out[3].data;
    if (n.sum) tensors[i++] = a.in[5].data;
    c.stream.run(*work, std::span(tensors).first(i), c.workspace);
  });
}

std::string between(const KernelQuery&) {
  return "it normalizes in one pass, so it cannot include sums from other GPUs or chunks";
}

}  // namespace

std::vector<KernelType> batch_norm_rows() {
  return {{.op = "moments", .name = "cudnn", .refuses = between},
          {.op = "batch_norm", .name = "cudnn", .refuses = library_refuses, .prepare = library},
          own("batch_norm", refuses, steps),
          {.op = "batch_norm_backward",
           .name = "cudnn",
           .refuses = library_refuses_gradients,
           .prepare = library_gradients},
          own("batch_norm_backward", gradients_refuse, gradient_steps)};
}

}  // namespace dpt::cuda
