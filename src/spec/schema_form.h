// What may stand as a value, as JSON Schema says it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/keys.h"

namespace dpt {

using Parts = std::vector<std::string>;  // JSON texts: members, items

void append(Parts& to, const Parts& from);

// What may stand as a value.
struct Form {
  Parts types{};        // of JSON; empty: any
  Parts limits{};       // members of the schema, each for values of one type only
  Parts words{};        // the texts that there are, as JSON; empty: any text
  std::string other{};  // a schema in the place of all these
};

// What may stand in the place of a value of the Form.
struct Also {
  bool null = false;
  bool none = false;        // the word
  bool expression = false;  // ${...}
};

// The schema of a value. about: its description.
std::string schema_of(const Form& f, std::string_view about, const Also& also);

Also also_of(const KeyDoc& k, bool expressions);
// One value of the kind, with the key's range or words.
Form scalar_form(KeyKind kind, const KeyDoc& k);
// One value or a list of them.
Form list_form(KeyKind kind, const KeyDoc& k, bool expressions);
// A value of the one or the other. REQUIRES: no type is in both.
Form joined(Form a, const Form& b);

}  // namespace dpt
