// What a spec can name under `model:`. One file in layers/ holds one LayerType.
#pragma once

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "spec/nameable.h"

namespace dpt {

struct LayerType : Nameable {
  // Lowers the layer to operators. `x` has one value, or several where `from` is a list and the
  // layer takes several. Throws Error{Fault::spec} where the shapes do not fit.
  ValueId (*build)(const std::any& settings, GraphBuilder& g, std::span<const ValueId> x);
  bool several_inputs = false;  // add, concat
  // The same layer as an expression of PyTorch, with the sizes that dptrain infers:
  // "nn.Linear(784, 200)".
  std::string (*torch)(const std::any& settings, const Shape& x);
  // The definition of what that expression names, where PyTorch has no such module; else empty.
  std::string_view torch_class{};
};

// REQUIRES: L has `static KeyTable<L> keys()`, `ValueId build(GraphBuilder&, ValueId) const` and
// `std::string torch(const Shape& x) const`.
template <class L>
LayerType layer_type(std::string_view name, std::string_view summary) {
  return {nameable<L>(name, summary),
          [](const std::any& settings, GraphBuilder& g, std::span<const ValueId> x) {
            return std::any_cast<const L&>(settings).build(g, x[0]);
          },
          false,
          [](const std::any& settings, const Shape& x) {
            return std::any_cast<const L&>(settings).torch(x);
          }};
}

std::span<const LayerType> layer_table();  // generated from layers/meson.build
std::vector<const Nameable*> layer_words();

}  // namespace dpt
