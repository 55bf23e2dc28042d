// The GPU implementations of the single steps of batch normalization.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/norms.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

// Checks that the first `images` inputs and the result have one type, and that weights are f32.
std::string refuses_images(const KernelQuery& q, size_t images) {
  const DType t = q.in[0].dtype;
  for (size_t i = 0; i < q.in.size(); ++i) {
    const DType d = q.in[i].dtype;
    if (d != DType::f64 && d != (i < images ? t : DType::f32) && q.in[i].shape != q.in[0].shape)
      return fmt::format("it takes weights in f32, not {}", name_of(d));
    if (q.in[i].shape == q.in[0].shape && d != t) return "it takes images of one type";
  }
  if (q.out[0].shape == q.in[0].shape && q.out[0].dtype != t)
    return "its output must have the type of its input";
  return "";
}
std::string refuses_two(const KernelQuery& q) { return refuses_images(q, 2); }
std::string refuses_norm(const KernelQuery& q) {
  const auto s = settings<BatchNorm>(q);
  return s.training ? "it takes moments that are already computed"
                    : refuses_images(q, s.add ? 2 : 1);
}

// moments, weight: indices of these inputs; the bias follows the weight.
template <class T>
Normalisation<T> normalisation(const KernelArgs& a, size_t moments, size_t weight) {
  return {at<double>(a.in[moments]), at_or_null<float>(a.in, weight),
          at_or_null<float>(a.in, weight + 1), a.in[moments].desc.shape[0] / 2};
}

ColumnPlan plan_of(const TensorDesc& x, int terms) {
  const int64_t channels = x.shape[1];
  const ColumnPlan plan(count(x) / std::max<int64_t>(1, channels), channels);
  DeviceContext::current().reserve(plan.bytes(terms));
  return plan;
}

// Writes sums [2 C + 1]: both terms by channel, then the row count.
template <class Term>
void sum_moments(DeviceContext& c, const ColumnPlan& plan, const Term& term, const TensorView& to) {
  double* const sums = at<double>(to);
  sum_columns<Term, double>(c, plan, term, {sums, sums + plan.columns},
                            static_cast<double>(plan.rows));
}

std::unique_ptr<Kernel> channel_sums(const KernelQuery& q) {
  const ColumnPlan plan = plan_of(q.in[0], 2);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([plan, rows = channels_of(q.in[0])](const KernelArgs& a, DeviceContext& c) {
      sum_moments(c, plan, MomentTerms<T>{rows, at<T>(a.in[0])}, a.out[0]);
    });
  });
}

std::unique_ptr<Kernel> moments(const KernelQuery& q) {
  return enqueue([eps = settings<BatchNorm>(q).eps, channels = count(q.out[0]) / 2](
                     const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           Moments{.sums = at<double>(a.in[0]),
                   .out = at<double>(a.out[0]),
                   .eps = eps,
                   .channels = channels},
           channels);
  });
}

std::unique_ptr<Kernel> running_moments(const KernelQuery& q) {
  return enqueue([eps = settings<BatchNorm>(q).eps, channels = count(q.out[0]) / 2](
                     const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           RunningMoments{.mean = at<float>(a.in[0]),
                          .variance = at<float>(a.in[1]),
                          .out = at<double>(a.out[0]),
                          .eps = eps,
                          .channels = channels},
           channels);
  });
}

std::unique_ptr<Kernel> update_running(const KernelQuery& q) {
  return enqueue([momentum = settings<BatchNorm>(q).momentum, channels = count(q.in[1])](
                     const KernelArgs& a, DeviceContext& c) {
    UpdateRunning update{.sums = at<double>(a.in[0]),
                         .mean = at<float>(a.in[1]),
                         .variance = at<float>(a.in[2]),
                         .batches = at<int64_t>(a.in[3]),
                         .new_mean = at<float>(a.out[0]),
                         .new_variance = at<float>(a.out[1]),
                         .new_batches = at<int64_t>(a.out[2]),
                         .momentum = momentum,
                         .channels = channels};
    if (a.in.size() == 4) return launch(c.stream, update, 1);
    auto* const gathered = at<double>(a.out[3]);
    update.sums = gathered;
    launch(c.stream,
           DeferRunning{.batch = update,
                        .chunk = at<double>(a.in[0]),
                        .before = at<double>(a.in[4]),
                        .gathered = gathered,
                        .state = c.state},
           1);
  });
}

std::unique_ptr<Kernel> batch_norm(const KernelQuery& q) {
  const bool adds = settings<BatchNorm>(q).add, relu = settings<BatchNorm>(q).relu;
  const size_t at_moments = adds ? 2 : 1;
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=, rows = channels_of(q.in[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             Normalise<T>{rows, normalisation<T>(a, at_moments, at_moments + 1), at<T>(a.in[0]),
                          adds ? at<T>(a.in[1]) : nullptr, at<T>(a.out[0]), relu},
             rows.elements);
    });
  });
}

// batch_norm_sums{add,relu}.
std::unique_ptr<Kernel> residual_gradient(const KernelQuery& q) {
  const ColumnPlan plan = plan_of(q.in[1], 2);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=, rows = channels_of(q.in[1])](const KernelArgs& a, DeviceContext& c) {
      sum_moments(
          c, plan,
          ResidualTerms<T>{rows, normalisation<T>(a, 2, a.in.size()), at<T>(a.in[3]),
                           at<T>(a.in[1]), at<T>(a.in[0]), at_or_null<T>(a.in, 4), at<T>(a.out[0])},
          a.out[1]);
    });
  });
}

std::unique_ptr<Kernel> gradient_sums(const KernelQuery& q) {
  if (settings<BatchNorm>(q).add) return residual_gradient(q);
  const bool relu = settings<BatchNorm>(q).relu;
  const ColumnPlan plan = plan_of(q.in[1], 2);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=, rows = channels_of(q.in[1])](const KernelArgs& a, DeviceContext& c) {
      sum_moments(
          c, plan,
          GradientTerms<T>{rows, normalisation<T>(a, 2, 3), at<T>(a.in[0]), at<T>(a.in[1]), relu},
          a.out[0]);
    });
  });
}

std::unique_ptr<Kernel> input_gradient(const KernelQuery& q) {
  const bool relu = settings<BatchNorm>(q).relu, batch = settings<BatchNorm>(q).batch;
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=, rows = channels_of(q.in[1])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             NormaliseGradient<T>{rows, normalisation<T>(a, 2, batch ? 4 : 3), at<T>(a.in[0]),
                                  at<T>(a.in[1]), batch ? at<double>(a.in[3]) : nullptr,
                                  at<T>(a.out[0]), relu},
             rows.elements);
    });
  });
}

std::unique_ptr<Kernel> affine_gradient(const KernelQuery& q) {
  return enqueue([channels = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           AffineGradient{.sums = at<double>(a.in[0]),
                          .dw = at<float>(a.out[0]),
                          .db = at<float>(a.out[1]),
                          .channels = channels},
           channels);
  });
}

std::string takes_all(const KernelQuery&) { return ""; }

}  // namespace

std::vector<KernelType> norm_rows() {
  return {own("channel_sums", takes_all, channel_sums),
          own("moments", takes_all, moments),
          own("running_moments", not_f32, running_moments),
          own("update_running", not_f32, update_running),
          own("batch_norm", refuses_norm, batch_norm),
          own("batch_norm_sums", refuses_two, gradient_sums),
          own("batch_norm_input_gradient", refuses_two, input_gradient),
          own("batch_norm_weight_gradient", not_f32, affine_gradient)};
}

}  // namespace dpt::cuda
