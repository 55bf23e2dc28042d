// The registry of `model:`. Each file in layers/ holds one LayerType.
#pragma once

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/python_call.h"
#include "graph/builder.h"
#include "spec/registry_entry.h"

namespace dpt {

struct LayerType : RegistryEntry {
  // Adds the layer's operators and parameters to a graph, and returns its output. `x` has one
  // value; it has several if `from` is a list and several_inputs. Throws Error{spec} if shapes do
  // not fit.
  ValueId (*build)(const std::any& settings, GraphBuilder& g, std::span<const ValueId> x);
  bool several_inputs = false;  // add, concat
  // The layer as a Python expression for PyTorch, with inferred sizes: "nn.Linear(784, 200)". x:
  // shape of the input.
  std::string (*torch)(const std::any& settings, const Shape& x);
  // Python source of the class that the expression uses, if PyTorch has no such module; else empty.
  std::string_view torch_class{};
  bool norm = false;  // a normalization layer, for the pattern `norm` (parameter_pattern.h)
};

// REQUIRES: L has `static KeyTable<L> keys()` and `ValueId build(GraphBuilder&, x) const`; x:
// ValueId, or std::span<const ValueId> if it takes several. Optional: `std::string torch(const
// Shape& x) const`, without which the layer is the module of kUsage with its keys; `static
// constexpr bool kNorm` and `std::string_view kTorchClass`.
template <class L>
LayerType layer_type(std::string_view name, std::string_view summary) {
  LayerType t{registry_entry<L>(name, summary)};
  constexpr bool kSeveral = requires(const L& l, GraphBuilder& g, std::span<const ValueId> x) {
    l.build(g, x);
  };
  t.several_inputs = kSeveral;
  t.build = [](const std::any& settings, GraphBuilder& g, std::span<const ValueId> x) {
    const L& layer = std::any_cast<const L&>(settings);
    if constexpr (kSeveral)
      return layer.build(g, x);
    else
      return layer.build(g, x[0]);
  };
  t.torch = [](const std::any& settings, [[maybe_unused]] const Shape& x) {
    const L& layer = std::any_cast<const L&>(settings);
    if constexpr (requires { layer.torch(x); })
      return layer.torch(x);
    else
      return PythonCall(L::kUsage.callee()).keys(L::keys().arguments(layer)).str();
  };
  if constexpr (requires { L::kNorm; }) t.norm = L::kNorm;
  if constexpr (requires { L::kTorchClass; }) t.torch_class = L::kTorchClass;
  return t;
}

std::span<const LayerType> layer_table();  // generated from layers/meson.build
std::vector<const RegistryEntry*> layer_registry();

}  // namespace dpt
