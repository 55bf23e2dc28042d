// Finds mistakes in YAML that a parser only reports at a later location.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dpt {

struct YamlSlip {
  size_t offset = 0, length = 1;  // bytes
  std::string message;
};

// What to write instead of `epochs:1` or `epochs = 1`; empty if the text is neither.
std::string missing_space(std::string_view text);

// An entry of a list around `offset` that YAML reads as a part of the line above it: `-relu` lacks
// its space, `relu` its dash. None: something else is wrong.
std::optional<YamlSlip> missing_dash(std::string_view text, size_t offset);

// What to write where YAML made one text of two lines, "12 -relu"; empty: it did not. line: the one
// where the value begins.
std::string joined_lines(std::string_view value, std::string_view line);

// A key could not begin at `offset`: the line above has no space after its colon, or the key is
// indented further than the one above. None: something else is wrong.
std::optional<YamlSlip> slip_before_key(std::string_view text, size_t offset);

// The last `bracket` ('{' or '[') before `offset` that is not closed before it. Empty if all are
// closed.
std::optional<YamlSlip> open_bracket(std::string_view text, size_t offset, char bracket);

}  // namespace dpt
