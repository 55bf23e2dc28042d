// Batch normalization (Ioffe and Szegedy, 2015): y[N, C, ...] = (x - mean[C]) * rstd[C] * w[C] +
// b[C], by PyTorch's formulas. graph/passes/fuse.cpp sets what else the operator does (BatchNorm):
//   batch_norm(x, moments, [w], [b]) -> y
//   batch_norm{relu}(x, moments, [w], [b]) -> relu(y)
//   batch_norm{add,relu}(x, r, moments, [w], [b]) -> relu(y + r): the end of a residual block
//   batch_norm{training}(x, [r], [w], [b], [mean[C], variance[C], batches[]]) -> y, moments[2 C],
//     [mean, variance and batches after this batch]: with the moments of x, for GPUs; it sums over
//     a single shard only
#include "graph/operators/norms/batch_norm.h"

#include "base/half.h"
#include "graph/formulas/activation.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kName = "batch_norm";

// Indices of the inputs: x, [r], [moments], up to two [C], and perhaps the running statistics.
struct Inputs {
  size_t images, moments, affine, weights, running;
  Inputs(const BatchNorm& s, std::span<const TensorDesc> in)
      : images(s.add ? 2 : 1),
        moments(images),
        affine(s.training ? images : images + 1),
        running(in.size() - (s.training && in.back().dtype == DType::i64 ? 3 : 0)) {
    weights = running - affine;
  }
};

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const BatchNorm& s) {
  require(s.relu || !s.add, "an addition in a batch norm is followed by relu");
  need_channels(kName, in[0]);
  const Inputs i(s, in);
  const int64_t c = channels_of(in[0]);
  if (s.add && in[1] != in[0])
    fail(Fault::spec, "{}: {} and {} do not fit together", kName, str(in[0]), str(in[1]));
  if (!s.training) need_shape(kName, in[i.moments], {2 * c});
  if (i.weights > 2) fail(Fault::spec, "{}: {} weights are too many", kName, i.weights);
  for (const TensorDesc& d : in.subspan(i.affine, i.weights)) need_shape(kName, d, {c});
  if (!s.training) return {in[0]};
  std::vector<TensorDesc> out = {in[0], f64({2 * c})};
  if (i.running == in.size()) return out;
  for (const TensorDesc& d : in.subspan(i.running, 2)) need_shape(kName, d, {c});
  need_shape(kName, in.back(), {});
  out.insert(out.end(), in.end() - 3, in.end());
  return out;
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const auto& s = settings<BatchNorm>(n.attrs);
  std::vector<TensorDesc> descs;
  for (ValueId v : n.in) descs.push_back(g.desc(v));
  const Inputs i(s, descs);
  const std::span affine = std::span(n.in).subspan(i.affine, i.weights);
  const ValueId x = n.in[0], moments = s.training ? n.out[1] : n.in[i.moments];
  // Where y > 0 is read from y if an addition makes it, and otherwise recomputed.
  const bool by_y = s.add, recomputes = s.relu && !s.add;
  BatchNorm attrs = s;
  attrs.training = false;
  std::vector<ValueId> in = {dy[0], x, moments};
  ValueId sums = kNoValue;
  if (s.batch || !affine.empty()) {
    std::vector<ValueId> all = in;
    if (by_y) all.push_back(n.out[0]);
    if (recomputes) all.insert(all.end(), affine.begin(), affine.end());
    sums = g.apply("batch_norm_sums", all, attrs);
    if (by_y) {
      in[0] = sums;
      sums = g.results()[1];
    }
  } else if (by_y) {
    in[0] = g.apply("relu_gradient", {n.out[0], dy[0]});
  }
  std::vector<ValueId> out(n.in.size(), kNoValue);
  if (s.add) out[1] = in[0];
  if (s.batch) in.push_back(g.apply("all_reduce", {sums}));
  if (!affine.empty()) {
    out[i.affine] = g.apply("batch_norm_weight_gradient", {sums, affine[0]});
    if (affine.size() > 1) out[i.affine + 1] = g.results()[1];
  }
  for (ValueId v : affine.first(std::min<size_t>(recomputes ? 2 : 1, affine.size())))
    in.push_back(v);
  attrs.add = false;
  attrs.relu = recomputes;
  out[0] = g.apply("batch_norm_input_gradient", in, attrs);
  return out;
}

// Normalizes, with the addition in the type of the inputs, as in `add`.
void normalise(const KernelArgs& args, const BatchNorm& s) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto r = s.add ? args.in[1].as<const T>() : std::span<const T>{};
    const auto y = args.out[0].as<T>();
    const size_t moments = s.add ? 2 : 1;
    const Normalisation<T> n(args, moments, moments + 1);
    const auto round = rounding_between<T>(s);
    each_element(args.in[0], [&](size_t i, size_t c) {
      const T value = s.add ? round(round(n(x[i], c)) + r[i]) : n(x[i], c);
      y[i] = s.relu ? formula::relu(value) : value;
    });
  });
}

// Runs the operators that compute the moments, then normalizes with them.
void normalise_batch(const KernelArgs& args, const BatchNorm& s) {
  std::vector<TensorDesc> descs;
  for (const TensorView& v : args.in) descs.push_back(v.desc);
  const Inputs i(s, descs);
  std::vector<double> numbers(static_cast<size_t>(2 * channels_of(descs[0]) + 1));
  const TensorView sums{f64({std::ssize(numbers)}), reinterpret_cast<std::byte*>(numbers.data())};
  const auto run = [&](std::string_view step, const std::vector<TensorView>& in,
                       std::span<const TensorView> out) {
    op(step).reference({in, out, args.context}, s);
  };
  run("channel_sums", {args.in[0]}, {&sums, 1});
  run("moments", {sums}, args.out.subspan(1, 1));
  const auto at = [&](size_t input) { return args.in.begin() + static_cast<ptrdiff_t>(input); };
  std::vector<TensorView> in(args.in.begin(), at(i.images));
  in.push_back(args.out[1]);
  in.insert(in.end(), at(i.affine), at(i.running));
  normalise({in, args.out.first(1), args.context}, s);
  if (i.running == args.in.size()) return;
  std::vector<TensorView> statistics = {sums};
  statistics.insert(statistics.end(), at(i.running), args.in.end());
  run("update_running", statistics, args.out.subspan(2));
}

void forward(const KernelArgs& args, const BatchNorm& s) {
  if (s.training)
    normalise_batch(args, s);
  else
    normalise(args, s);
}

}  // namespace

Operators batch_norm() {
  return {{.name = kName,
           .precision = Precision::statistics,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .variant = typed<variant_of>,
           .takes_batch_moments = [](const std::any& attrs) {
             return settings<BatchNorm>(attrs).training;
           }}};
}

}  // namespace dpt::operators
