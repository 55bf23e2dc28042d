// Slips in YAML whose consequence a parser reports at a later place than the slip's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dpt {

struct YamlSlip {
  size_t offset = 0, length = 1;  // in bytes of the text
  std::string message;
};

// What to write for `epochs:1` or `epochs = 1`; empty: the text is neither.
std::string missing_space(std::string_view text);

// A key could not begin at `offset`: the line above has no space after its colon, or the key is
// indented further than the one above. None: something else is wrong.
std::optional<YamlSlip> slip_before_key(std::string_view text, size_t offset);

// The last `bracket`, '{' or '[', in front of `offset` that is still open there. None: there is
// none.
std::optional<YamlSlip> open_bracket(std::string_view text, size_t offset, char bracket);

}  // namespace dpt
