// Batch norm with the batch's own moments as one operator, for GPUs. Made by graph/passes/fuse.cpp
// from channel_sums, all_reduce, moments, update_running and batch_norm; it sums over a single
// shard only.
//   batch_norm_training(x, [w], [b], [mean[C], variance[C], batches[]]) -> y, moments[2 C], [mean,
//     variance and batches after this batch]
//   batch_norm_relu_training(x, ...):        with relu
//   batch_norm_add_relu_training(x, r, ...): with the addition of r and relu
#include "graph/operators/norms/batch_norm.h"

namespace dpt::operators {
namespace {

// How many inputs of each kind an operator has: x and perhaps r, up to two [C], and perhaps the
// three running statistics.
struct Inputs {
  size_t images, affine, running;
  Inputs(std::string_view op, size_t inputs, bool runs)
      : images(op == "batch_norm_add_relu_training" ? 2 : 1), running(runs ? 3 : 0) {
    affine = inputs - images - running;
  }
  size_t statistics() const { return images + affine; }
};

Inputs inputs_of(std::string_view op, std::span<const TensorDesc> in) {
  return {op, in.size(), in.back().dtype == DType::i64};
}

std::vector<TensorDesc> infer_of(std::string_view op, std::span<const TensorDesc> in) {
  const Inputs i = inputs_of(op, in);
  need_channels(op, in[0]);
  const int64_t c = channels_of(in[0]);
  if (i.images > 1) need_shape(op, in[1], in[0].shape);
  if (i.affine > 2) fail(Fault::spec, "{}: {} weights are too many", op, i.affine);
  for (const TensorDesc& d : in.subspan(i.images, i.affine)) need_shape(op, d, {c});
  std::vector<TensorDesc> out = {in[0], f64({2 * c})};
  if (i.running > 0) {
    for (const TensorDesc& d : in.subspan(i.statistics(), 2)) need_shape(op, d, {c});
    need_shape(op, in.back(), {});
    out.insert(out.end(), in.end() - 3, in.end());
  }
  return out;
}

// Runs the operators that it replaces.
void forward_of(std::string_view name, const KernelArgs& args, const std::any& attrs) {
  std::vector<TensorDesc> descs;
  for (const TensorView& v : args.in) descs.push_back(v.desc);
  const Inputs i = inputs_of(name, descs);
  std::vector<double> numbers(static_cast<size_t>(2 * channels_of(descs[0]) + 1));
  const TensorView sums{f64({std::ssize(numbers)}), reinterpret_cast<std::byte*>(numbers.data())};
  const auto run = [&](std::string_view step, const std::vector<TensorView>& in,
                       std::span<const TensorView> out) {
    op(step).reference({in, out, args.context}, attrs);
  };
  run("channel_sums", {args.in[0]}, {&sums, 1});
  run("moments", {sums}, args.out.subspan(1, 1));
  std::vector<TensorView> in(args.in.begin(), args.in.begin() + std::ssize(descs));
  std::vector<TensorView> statistics(in.begin() + static_cast<std::ptrdiff_t>(i.statistics()),
                                     in.end());
  in.resize(i.statistics());
  in.insert(in.begin() + static_cast<std::ptrdiff_t>(i.images), args.out[1]);
  run(name.substr(0, name.rfind("_training")), in, args.out.first(1));
  if (statistics.empty()) return;
  statistics.insert(statistics.begin(), sums);
  run("update_running", statistics, args.out.subspan(2));
}

std::vector<Sample> samples_of(std::string_view name) {
  std::vector<Sample> out;
  const size_t images = name == "batch_norm_add_relu_training" ? 2 : 1;
  for (const Shape& s : {Shape{3, 2}, Shape{2, 17, 5}, Shape{3, 16, 2, 3}})
    for (size_t affine = 0; affine <= 2; ++affine)
      for (const double momentum : {0.1, -1.0, 0.0}) {  // 0: without running statistics
        Sample sample{{name,
                       std::vector(images, f32(s)),
                       {f32(s), f64({2 * s[1]})},
                       BatchNorm{.eps = 0.01, .momentum = momentum}}};
        KernelQuery& q = sample.query;
        q.in.insert(q.in.end(), affine, f32({s[1]}));
        if (momentum != 0) {
          sample.ranges.resize(q.in.size());
          sample.ranges.insert(sample.ranges.end(), {{}, kPositive, {0, 9}});
          const TensorDesc running[] = {f32({s[1]}), f32({s[1]}), {DType::i64, {}}};
          q.in.insert(q.in.end(), std::begin(running), std::end(running));
          q.out.insert(q.out.end(), std::begin(running), std::end(running));
        }
        out.push_back(sample);
      }
  return out;
}

template <const char* kName>
OperatorType training() {
  return on_images(
      {kName, Precision::statistics,
       [](std::span<const TensorDesc> in, const std::any&) { return infer_of(kName, in); }, nullptr,
       [](const KernelArgs& args, const std::any& attrs) { forward_of(kName, args, attrs); },
       [] { return samples_of(kName); }, elements_of_first_input});
}

constexpr char kPlain[] = "batch_norm_training", kRelu[] = "batch_norm_relu_training",
               kAddRelu[] = "batch_norm_add_relu_training";

}  // namespace

OperatorType batch_norm_training() { return training<kPlain>(); }
OperatorType batch_norm_relu_training() { return training<kRelu>(); }
OperatorType batch_norm_add_relu_training() { return training<kAddRelu>(); }

}  // namespace dpt::operators
