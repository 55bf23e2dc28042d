// `${width * 4 / 2 + 1}` inside the scalars of a block.
#pragma once

#include <map>
#include <string>

#include "spec/expansion.h"

namespace dpt {

// A block's parameters by name.
using Scope = std::map<std::string, Node, std::less<>>;

// The tree with every `${...}` in its scalars replaced. A scalar that is nothing else becomes the
// value, a number again or quoted text; else the value's text is put in. Integers stay integers:
// + - * % and // (which rounds down) of them, and / where it leaves no rest; with a number that has
// a point all is real. Complaints stand at the scalar that holds the expression. What is made is
// added to `made`; where that is full, the result is incomplete.
Node substitute(const Node& n, const Scope& scope, Expansion& made, Diagnostics& d);

bool has_expression(const Node& scalar);

}  // namespace dpt
