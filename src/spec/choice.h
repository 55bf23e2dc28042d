// What is chosen by name, written in one of three ways: `name`, `name: main value`,
// `name: {key: value}`.
#pragma once

#include <string_view>
#include <vector>

#include "spec/nameable.h"

namespace dpt {

using Words = std::vector<const Nameable*>;

std::vector<std::string_view> names_of(const Words& words);
const Nameable* find_word(const Words& words, std::string_view name);

// `what`: "optimizer", for messages. `siblings`: keys that may stand beside the name, read by the
// caller. A choice without `what` where there is a complaint, or only siblings.
Choice read_choice(std::string_view what, const Node& n, const Words& words, Diagnostics& d,
                   const std::vector<std::string_view>& siblings = {});

// The same of a name and what stands after it, both found already.
Choice decode_choice(std::string_view what, const Located<std::string>& name, const Node& settings,
                     const Words& words, Diagnostics& d);

// A list of choices; one alone is a list of one.
std::vector<Choice> read_choices(std::string_view what, const Node& n, const Words& words,
                                 Diagnostics& d);

}  // namespace dpt
