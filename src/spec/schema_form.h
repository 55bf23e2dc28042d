// Describes values as JSON Schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/keys.h"

namespace dpt {

using Parts = std::vector<std::string>;  // JSON texts of members or items

void append(Parts& to, const Parts& from);

// The values that a key accepts.
struct Form {
  Parts types{};        // JSON types; empty: any
  Parts limits{};       // schema members, each of which constrains values of one type only
  Parts texts{};        // the accepted strings, as JSON; empty: any
  std::string other{};  // a schema that replaces all of the above
};

// Further values that are accepted instead of one of the Form.
struct Also {
  bool null = false;
  bool none = false;        // the word "none"
  bool expression = false;  // ${...}
};

// The schema of a value, with the description `about`.
std::string schema_of(const Form& f, std::string_view about, const Also& also);

Also also_of(const KeyDoc& k, bool expressions);
// A single value of the kind, with the key's range or words.
Form scalar_form(KeyKind kind, const KeyDoc& k);
// A single value or a list of values.
Form list_form(KeyKind kind, const KeyDoc& k, bool expressions);
// A value of either form. REQUIRES: the forms have no type in common.
Form joined(Form a, const Form& b);

}  // namespace dpt
