// Describes values as JSON Schema.
#pragma once

#include <string_view>

#include "formats/json.h"
#include "spec/keys.h"

namespace dpt {

// The values that a key accepts.
struct Form {
  Json::Array types{};    // names of JSON types; empty: any
  Json::Object limits{};  // schema members, each of which constrains values of one type only
  Json::Array texts{};    // the accepted strings; empty: any
  Json other{};           // a schema that replaces all of the above; null: none
};

template <class List>
void append(List& to, const List& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Further values that are accepted instead of one of the Form.
struct Also {
  bool null = false;
  bool none = false;        // the word "none"
  bool expression = false;  // ${...}
};

// The schema of a value, with the description `about`.
Json schema_of(const Form& f, std::string_view about, const Also& also);

Also also_of(const KeyDoc& k, bool expressions);
// A single value of the kind, with the key's range or words.
Form scalar_form(KeyKind kind, const KeyDoc& k);
// A single value or a list of values.
Form list_form(KeyKind kind, const KeyDoc& k, bool expressions);
// A value of either form. REQUIRES: the forms have no type in common.
Form joined(Form a, const Form& b);

}  // namespace dpt
