// Expressions such as `${width * 4 / 2 + 1}` in the scalars of a block.
#pragma once

#include <map>
#include <string>

#include "spec/expansion.h"

namespace dpt {

// A block's parameters by name.
using Scope = std::map<std::string, Node, std::less<>>;

// Returns the tree with every `${...}` in its scalars replaced. A scalar that is a single
// expression becomes its value (a number, or quoted text); otherwise the value's text is inserted.
// Integers stay integers under + - * % and // (which rounds down), and under / if there is no
// remainder; any operand with a decimal point makes the result a double. Errors are reported at the
// scalar. The size of the result is added to `made`; once `made` is full, the result is incomplete.
Node substitute(const Node& n, const Scope& scope, Expansion& made, Diagnostics& d);

bool has_expression(const Node& scalar);

}  // namespace dpt
