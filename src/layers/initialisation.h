// What a spec can name under `init:` beside a layer: the functions of torch.nn.init that draw each
// element for itself.
#pragma once

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "spec/nameable.h"

namespace dpt {

struct InitialisationType : Nameable {
  // Of a parameter of this shape, [out, in, ...]. Throws Error{Fault::spec} where it needs another.
  Init (*make)(const std::any& settings, const Shape& shape);
  // As a statement of PyTorch, `parameter` being an expression of it.
  std::string (*torch)(const std::any& settings, std::string_view parameter);
};

std::span<const InitialisationType> initialisation_table();
std::vector<const Nameable*> initialisation_words();

}  // namespace dpt
