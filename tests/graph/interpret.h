// Runs a graph on the host, for tests of operators and gradients.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/half.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "graph/program/program.h"
#include "graph/samples/samples.h"

namespace dpt {

// Bytes of one value, with its shape.
class HostTensor {
 public:
  TensorDesc desc;
  std::vector<double> storage;  // for its alignment

  explicit HostTensor(TensorDesc d)
      : desc(d), storage((d.bytes() + 7) / 8 + 1), size_(static_cast<size_t>(d.shape.elements())) {}
  TensorView view() { return {desc, reinterpret_cast<std::byte*>(storage.data())}; }
  size_t size() const { return size_; }
  double get(size_t i) {
    switch (desc.dtype) {
      case DType::f32:
        return static_cast<double>(as<float>()[i]);
      case DType::f64:
        return storage[i];
      case DType::i32:
        return as<int32_t>()[i];
      case DType::u8:
        return as<uint8_t>()[i];
      case DType::i64:
        return static_cast<double>(as<int64_t>()[i]);
      case DType::bf16:
        return double{from_bf16(as<uint16_t>()[i])};
      case DType::f16:
        return double{from_f16(as<uint16_t>()[i])};
    }
    return NAN;
  }
  void set(size_t i, double x) {
    switch (desc.dtype) {
      case DType::f32:
        as<float>()[i] = static_cast<float>(x);
        break;
      case DType::f64:
        storage[i] = x;
        break;
      case DType::i32:
        as<int32_t>()[i] = std::isnan(x) ? INT32_MIN : static_cast<int32_t>(x);
        break;
      case DType::u8:
        as<uint8_t>()[i] = std::isnan(x) ? UINT8_MAX : static_cast<uint8_t>(x);
        break;
      case DType::i64:
        as<int64_t>()[i] = std::isnan(x) ? INT64_MIN : static_cast<int64_t>(x);
        break;
      case DType::bf16:
        as<uint16_t>()[i] = to_bf16(static_cast<float>(x));
        break;
      case DType::f16:
        as<uint16_t>()[i] = to_f16(static_cast<float>(x));
        break;
    }
  }

 private:
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(storage.data());
  }
  size_t size_;  // the product of the extents, which is asked for at each element
};

inline HostTensor tensor(TensorDesc d, const std::vector<double>& content) {
  HostTensor t(d);
  for (size_t i = 0; i < content.size(); ++i) t.set(i, content[i]);
  return t;
}

inline bool is_float(DType t) { return t == DType::f32 || t == DType::f64; }

// Input number `i` of a sample, in the type `real` where it is a real one. Numbers near a kink are
// moved away from it, so that differences of 1e-6 stay on one side.
inline HostTensor sample_input(const Sample& s, size_t i, DType real, std::mt19937& random) {
  TensorDesc d = s.query.in[i];
  if (d.dtype == DType::f32) d.dtype = real;
  const Sample::Range range = i < s.ranges.size() ? s.ranges[i] : Sample::Range{};
  HostTensor t(d);
  for (size_t e = 0; e < t.size(); ++e) {
    const double u = std::uniform_real_distribution<double>()(random);
    double x = range.low + u * (range.high - range.low);
    if (!is_float(d.dtype) && !is_half(d.dtype)) x = std::floor(x);
    for (double k : s.kinks)
      if (std::abs(x - k) < 1e-3) x = k + 2e-3;
    t.set(e, x);
  }
  return t;
}

// Runs one operator's plain loops and gives its results.
inline std::vector<HostTensor> run_reference(const OperatorType& op, std::vector<HostTensor>& in,
                                             const std::any& attrs,
                                             const StepContext& context = {}) {
  std::vector<TensorDesc> descs;
  std::vector<TensorView> from, to;
  for (HostTensor& t : in) {
    descs.push_back(t.desc);
    from.push_back(t.view());
  }
  std::vector<HostTensor> out;
  for (const TensorDesc& d : op.infer(descs, attrs)) out.emplace_back(d);
  for (HostTensor& t : out) {
    for (size_t i = 0; i < t.size(); ++i) t.set(i, NAN);  // whatever is not written shows
    to.push_back(t.view());
  }
  op.reference({from, to, &context}, attrs);
  return out;
}

// Runs a graph, or one part of it, by the operators' plain loops or, where rows of kernels are
// given, by the first that takes a node. `values` has a tensor for each value; those that no node
// makes are filled already.
inline void run_graph(const Graph& graph, std::vector<HostTensor>& values,
                      const StepContext& context = {}, std::optional<Part> only = {},
                      std::span<const KernelType> kernels = {}) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (only && graph.nodes[i].part != *only) continue;
    const GraphNode& n = graph.nodes[i];
    std::vector<TensorView> in, out;
    for (ValueId v : n.in) in.push_back(values[static_cast<size_t>(v)].view());
    for (ValueId v : n.out) out.push_back(values[static_cast<size_t>(v)].view());
    const KernelArgs args{in, out, &context};
    if (!kernels.empty()) {
      prepare(choose_kernel(graph, i, kernels), query_of(graph, i))->run(args);
      continue;
    }
    n.op->reference(args, n.attrs);
    if (n.rounds != DType::f32)
      op("round_to").reference({{out.data(), 1}, {out.data(), 1}, &context}, Cast{n.rounds});
  }
}

}  // namespace dpt
