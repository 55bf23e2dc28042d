#include "backend/cuda/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "backend/cuda/implementations/kernels.h"
#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/in_layouts.h"
#include "graph/sample_run.h"
#include "graph/windows.h"

namespace dpt::cuda {
namespace {

// Images and their weights channels_last.
KernelQuery laid_out(KernelQuery q) {
  q = in_layouts(q);
  for (auto* side : {&q.in, &q.out})
    for (TensorDesc& d : *side)
      if (d.layout == Layout::transposed)
        d.layout = d.shape.rank() > 2 ? Layout::channels_last : Layout::plain;
  return q;
}

// In a half: all numbers, or only what has the shape of the first input, as where weights stay f32.
std::optional<KernelQuery> in_half(KernelQuery q, DType half, bool all) {
  for (TensorDesc& d : q.in)
    if (d.dtype == DType::f32 && (all || d.shape == q.in[0].shape)) d.dtype = half;
  if (std::any_cast<Cast>(&q.attrs)) return {};
  if (q.op == "attention_gradient") q.in[3].dtype = DType::f32;  // sums of softmax
  try {
    const auto out = op(q.op).infer(q.in, q.attrs);
    for (size_t i = 0; i < out.size(); ++i) q.out[i].dtype = out[i].dtype;
  } catch (const Error&) {
    return {};
  }
  return q;
}

HostTensor as(HostTensor& t, DType type) {
  HostTensor out({type, t.desc.shape, t.desc.layout});
  for (size_t i = 0; i < t.size(); ++i) out.set(i, t.get(i));
  return out;
}

// An index of max_pool's is inside of its window.
void make_indices(const Sample& s, HostTensor& indices, std::mt19937& random) {
  if (s.query.op == "adaptive_max_pool_gradient") {
    const Shape& y = s.query.in[0].shape;
    const Resize attrs{.extents = extents_of(y)};
    Sample forward{{"adaptive_max_pool", {s.query.out[0]}, {}, attrs}};
    std::vector<HostTensor> x = {sample_input(forward, 0, DType::f32, random)};
    indices = run_reference(op("adaptive_max_pool"), x, attrs)[1];
    return;
  }
  const auto& pool = std::any_cast<const Pool&>(s.query.attrs);
  const std::string_view pools = s.query.in[1].dtype == DType::u8 ? "max_pool_bytes" : "max_pool";
  Sample forward{{pools, {s.query.out[0]}, {}, pool}};
  std::vector<HostTensor> x = {sample_input(forward, 0, DType::f32, random)};
  indices = run_reference(op(pools), x, s.query.attrs)[1];
}

std::string type_of(const KernelQuery& q, bool tf32) {
  for (const auto* side : {&q.in, &q.out})
    for (const TensorDesc& d : *side)
      if (is_half(d.dtype)) return std::string(name_of(d.dtype));
  return tf32 ? "tf32" : std::string(name_of(q.in[0].dtype));
}

// Four steps of the number's fraction, relative to the largest: results are rounded once, but those
// of `add` after each of up to five inputs, and some sums are of numbers that were rounded. TF32
// has as many bits as f16.
double tolerance_of(DType half, bool tf32) {
  if (half == DType::bf16) return 0x1p-6;
  return half == DType::f16 || tf32 ? 0x1p-8 : 1e-5;
}

// The largest difference as a multiple of the tolerance, scaled by the largest value, since terms
// may cancel.
double distance(HostTensor& a, HostTensor& b, double tolerance) {
  double largest = 1, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a.get(i), y = b.get(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (std::isnan(x - y)) fail(Fault::failed, "element {} is {}, not {}", i, x, y);
    largest = std::max(largest, std::fabs(y));
    difference = std::max(difference, std::fabs(x - y));
  }
  return difference / (tolerance * largest);
}

}  // namespace

bool is_indices_gradient(const KernelQuery& q) {
  return q.op == "max_pool_gradient" || q.op == "max_pool_bytes_gradient" ||
         q.op == "adaptive_max_pool_gradient";
}

bool opaque(const KernelQuery& q, size_t result) {
  return q.op == "linear_relu_mask" && result == 1;
}

void same_bits(const KernelQuery& q, std::vector<HostTensor>& a, std::vector<HostTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!opaque(q, i) && std::memcmp(a[i].view().data, b[i].view().data, a[i].desc.bytes()) != 0)
      fail(Fault::failed, "result {} has other bits the second time", i);
}

std::string Outcome::text() const {
  if (failed > 0)
    return fmt::format("{} of {} comparisons failed; first {}", failed, compared, first);
  return fmt::format("{} comparisons, at most {:.2g} of the tolerance", compared, worst);
}

int Conformance::count() const {
  int out = 0;
  for (const auto& [key, outcome] : outcomes_) out += outcome.compared;
  return out;
}

std::string Conformance::failures() const {
  std::string out;
  for (const auto& [key, outcome] : outcomes_)
    if (outcome.failed > 0)
      out += fmt::format("{} {} {}: {}\n", std::get<0>(key), std::get<1>(key), std::get<2>(key),
                         outcome.text());
  return out;
}

std::vector<HostTensor> Conformance::inputs(const Sample& s) {
  std::vector<HostTensor> in;
  for (size_t i = 0; i < s.query.in.size(); ++i)
    in.push_back(sample_input(s, i, DType::f32, random_));
  if (is_indices_gradient(s.query)) make_indices(s, in[1], random_);
  if (s.query.op == "matmul_relu_gradient") make_mask(in[2], in[3]);
  return in;
}

void Conformance::compare(const Sample& s) { compare(s.query, inputs(s)); }

void Conformance::compare(const KernelQuery& f32, std::vector<HostTensor> in) {
  compare(f32, in, tolerance_of(DType::f32, false));
  if (f32.op == "reorder") return;  // its samples say how they lie
  compare(laid_out(f32), in, tolerance_of(DType::f32, false));
  for (const DType half : {DType::bf16, DType::f16})
    for (const bool all : {false, true}) {
      const auto q = in_half(laid_out(f32), half, all);
      if (q) compare(*q, in, tolerance_of(half, false));
    }
}

void Conformance::compare_with_gradient(const Sample& s) {
  compare(s);
  SampleRun run(s, random_);
  for (size_t i = 1; i < run.graph.nodes.size(); ++i) {
    const GraphNode& node = run.graph.nodes[i];
    if (node.op->is(Trait::view)) continue;
    std::vector<HostTensor> in;
    for (const ValueId v : node.in) in.push_back(run.values[static_cast<size_t>(v)]);
    compare(query_of(run.graph, i), std::move(in));
  }
}

void Conformance::compare(const KernelQuery& q, bool tf32) {
  Sample sample{q};
  DType half = DType::f32;
  for (auto* side : {&sample.query.in, &sample.query.out})
    for (TensorDesc& d : *side) {
      if (is_half(d.dtype)) half = std::exchange(d.dtype, DType::f32);
      d.layout = Layout::plain;
    }
  for (const Sample& small : samples_of(q.op))
    if (small.query.in.size() == q.in.size()) {
      sample.ranges = small.ranges;
      break;
    }
  std::vector<HostTensor> in = inputs(sample);
  compare(q, in, tolerance_of(half, tf32), tf32);
}

// By the product y = relu(y I).
void Conformance::make_mask(HostTensor& y, HostTensor& mask) {
  const int64_t n = y.desc.shape.back();
  std::vector<HostTensor> in = {y, HostTensor({DType::f32, {n, n}})};
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) in[1].set(i * static_cast<size_t>(n) + i, 1);
  const KernelQuery q{"linear_relu_mask", {y.desc, in[1].desc}, {y.desc, mask.desc}, {}};
  for (const KernelType& row : cuda_kernels())
    if (row.op == q.op && row.refuses(q).empty()) {
      mask = run_(row, q, in, false).out[1];
      return;
    }
}

void Conformance::compare(const KernelQuery& q, std::vector<HostTensor>& values, double tolerance,
                          bool tf32) {
  const OperatorType& type = op(q.op);
  std::vector<HostTensor> in, wide;
  for (size_t i = 0; i < values.size(); ++i) {
    HostTensor typed = as(values[i], q.in[i].dtype);
    // A reference that takes no halves gets their numbers as f32.
    wide.push_back(is_half(q.in[i].dtype) && !type.is(Trait::halves) ? as(typed, DType::f32)
                                                                     : HostTensor(typed));
    in.push_back(in_layout(typed, q.in[i].layout));
  }
  std::vector<HostTensor> expected = run_reference(type, wide, q.attrs, kStep);
  for (const KernelType& row : cuda_kernels()) {
    if (row.op != q.op || !row.refuses(q).empty()) continue;
    Outcome& outcome = outcomes_[{std::string(q.op), std::string(row.name), type_of(q, tf32)}];
    ++outcome.compared;
    for (const TensorDesc& d : q.in) compared_[std::string(q.op)].insert(d.dtype);
    try {
      compare(row, q, in, expected, tolerance, tf32);
    } catch (const std::exception& e) {
      if (outcome.failed++ == 0)
        outcome.first = fmt::format("with {}: {}", q.in[0].shape.str(), e.what());
    }
  }
}

void Conformance::compare(const KernelType& row, const KernelQuery& q, std::vector<HostTensor>& in,
                          std::vector<HostTensor>& expected, double tolerance, bool tf32) {
  const Key key{std::string(q.op), std::string(row.name), type_of(q, tf32)};
  Got got = run_(row, q, in, tf32);
  double worst = 0;
  for (size_t i = 0; i < got.out.size(); ++i) {
    if (opaque(q, i)) continue;
    HostTensor a = in_layout(got.out[i], Layout::plain), b = in_layout(expected[i], Layout::plain);
    const double off = distance(a, b, tolerance);
    worst = std::max(worst, off);
    if (off > 1) fail(Fault::failed, "result {} is off by {:.3g} times the tolerance", i, off);
  }
  outcomes_[key].worst = std::max(outcomes_[key].worst, worst);
  if (!got.fallbacks.empty() &&
      !(announced_ && announced_(std::get<0>(key), std::get<1>(key), std::get<2>(key))))
    fail(Fault::failed, "an own kernel ran instead: {}", got.fallbacks[0]);
}

}  // namespace dpt::cuda
