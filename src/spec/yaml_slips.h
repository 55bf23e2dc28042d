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

// The mistake if a key could not begin at `offset`: the line above lacks a space after its colon,
// or the key is indented more than the one above. Empty if something else is wrong.
std::optional<YamlSlip> slip_before_key(std::string_view text, size_t offset);

// The last `bracket` ('{' or '[') before `offset` that is not closed before it. Empty if all are
// closed.
std::optional<YamlSlip> open_bracket(std::string_view text, size_t offset, char bracket);

}  // namespace dpt
