#include "train/binding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/operator.h"

namespace dpt {
namespace {

constexpr size_t kLine = 64;

bool finite(const TensorView& v) {
  if (v.desc.dtype == DType::f32)
    return std::ranges::all_of(v.as<const float>(), [](float x) { return std::isfinite(x); });
  if (v.desc.dtype == DType::f64)
    return std::ranges::all_of(v.as<const double>(), [](double x) { return std::isfinite(x); });
  return true;
}

}  // namespace

Binding::Binding(const Program& program, const Memory& memory, std::span<const Part> parts)
    : program_(program), memory_(memory), constants_(program.constant_bytes + kLine) {
  const Graph& graph = program_.graph;
  for (ValueId v = 0; v < static_cast<ValueId>(graph.values.size()); ++v)
    if (graph[v].role == Role::constant)
      std::ranges::transform(graph[v].content, view(v).as<float>().begin(),
                             [](double x) { return static_cast<float>(x); });
  for (Part part : parts) bind(part);
}

void Binding::bind(Part part) {
  const Graph& graph = program_.graph;
  for (const Instruction& i : program_.part(part)) {
    const GraphNode& node = graph.nodes[i.node];
    const size_t count = node.in.size() + node.out.size();
    views_.push_back(std::make_unique<TensorView[]>(count));
    const std::span<TensorView> all(views_.back().get(), count);
    for (size_t n = 0; n < count; ++n)
      all[n] = view(n < node.in.size() ? node.in[n] : node.out[n - node.in.size()]);
    kernels_.push_back(i.kernel->prepare(query_of(graph, i.node)));
    bound_[static_cast<size_t>(part)].push_back(
        {kernels_.back().get(),
         {all.first(node.in.size()), all.subspan(node.in.size()), &context}});
  }
}

std::byte* Binding::pointer(ValueId v) const {
  require(v != kNoValue, "the program has this value");
  const Slice& place = program_.place[static_cast<size_t>(v)];
  switch (place.arena) {
    case Arena::weights:
      return memory_.weights + place.offset;
    case Arena::gradients:
      return memory_.gradients + place.offset;
    case Arena::activations:
      return memory_.activations + place.offset;
    case Arena::constants: {
      const auto base = reinterpret_cast<uintptr_t>(constants_.data());
      return reinterpret_cast<std::byte*>((base + kLine - 1) / kLine * kLine + place.offset);
    }
    case Arena::none:
      break;
  }
  return nullptr;  // a value that nothing uses
}

TensorView Binding::view(ValueId v) const { return {program_.graph[v].desc, pointer(v)}; }

double Binding::number(ValueId v) const { return *reinterpret_cast<const double*>(pointer(v)); }

void Binding::set_divisor(double divisor) const {
  *reinterpret_cast<float*>(pointer(program_.graph.divisor)) = static_cast<float>(divisor);
}

int64_t Binding::run_until_not_finite(Part part) {
  const auto& list = bound_[static_cast<size_t>(part)];
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].kernel->run(list[i].args);
    if (!std::ranges::all_of(list[i].args.out, finite)) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace dpt
