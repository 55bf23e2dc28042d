// The registry of `init:`, which a spec gives beside a layer: the functions of torch.nn.init that
// draw each element independently.
#pragma once

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "spec/registry_entry.h"

namespace dpt {

struct InitialisationType : RegistryEntry {
  // The initialization of a parameter of this shape, [out, in, ...]. Throws Error{spec} if the
  // function does not support the shape.
  Init (*make)(const std::any& settings, const Shape& shape);
  // The same as a Python statement for PyTorch; `parameter` is an expression for the parameter.
  std::string (*torch)(const std::any& settings, std::string_view parameter);
};

std::span<const InitialisationType> initialisation_table();
std::vector<const RegistryEntry*> initialisation_registry();

}  // namespace dpt
