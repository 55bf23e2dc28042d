#include "spec/schema_form.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "spec/json_pieces.h"

namespace dpt {
namespace {

// Adds a number's limits, including those of its type: 64 bits, or finite.
void add_limits(KeyKind kind, const Range& r, Parts& limits) {
  const bool whole = kind == KeyKind::integer;
  const bool ends = whole || !r.infinite;
  const std::string lowest = whole ? "-9223372036854775808" : "-1.7976931348623157e308";
  const std::string highest = whole ? "9223372036854775807" : "1.7976931348623157e308";
  if (std::isfinite(r.low))
    limits.push_back(
        json_member(r.above_low ? "exclusiveMinimum" : "minimum", fmt::format("{}", r.low)));
  else if (ends)
    limits.push_back(json_member("minimum", lowest));
  if (std::isfinite(r.high))
    limits.push_back(
        json_member(r.below_high ? "exclusiveMaximum" : "maximum", fmt::format("{}", r.high)));
  else if (ends)
    limits.push_back(json_member("maximum", highest));
}

// The members for the types and words of a Form.
Parts type_members(const Form& f, bool null) {
  if (!f.other.empty()) return {json_member("allOf", json_list({f.other}))};
  if (f.types.empty()) return {};
  Parts types = f.types;
  if (null) types.push_back(json_text("null"));
  if (!f.texts.empty() && f.types == Parts{json_text("string")}) {
    Parts texts = f.texts;
    if (null) texts.emplace_back("null");
    return {json_member("enum", json_list(texts))};
  }
  Parts out = {json_member("type", types.size() == 1 ? types[0] : json_list(types))};
  if (!f.texts.empty()) {
    out.push_back(json_member("if", R"({"type": "string"})"));
    out.push_back(json_member("then", json_object({json_member("enum", json_list(f.texts))})));
  }
  return out;
}

}  // namespace

void append(Parts& to, const Parts& from) { to.insert(to.end(), from.begin(), from.end()); }

std::string schema_of(const Form& f, std::string_view about, const Also& also) {
  Parts out = {json_member("description", json_text(about))};
  append(out, f.limits);
  const bool apart = also.null && !f.other.empty();  // `other` does not cover null
  Parts texts, types;
  if (also.none) texts.emplace_back("^none$");
  if (also.expression) texts.emplace_back(R"(\$\{.*\})");
  if (!texts.empty()) types.push_back(json_text("string"));
  if (apart) types.push_back(json_text("null"));
  if (types.empty()) {
    append(out, type_members(f, also.null));
    return json_object(out);
  }
  Parts exempt = {json_member("type", json_list(types))};
  if (!texts.empty())
    exempt.push_back(json_member("pattern", json_text(fmt::format("{}", fmt::join(texts, "|")))));
  out.push_back(json_member("if", json_object(exempt)));
  out.push_back(json_member("else", json_object(type_members(f, also.null && !apart))));
  return json_object(out);
}

Also also_of(const KeyDoc& k, bool expressions) {
  const bool text = k.type == KeyKind::text || k.type == KeyKind::path || k.type == KeyKind::texts;
  const bool listed = std::ranges::find(k.choices, "none") != k.choices.end();
  return {.null = !k.required(),
          .none = !text && !listed && (k.fallback == "none" || k.fallback == "[]"),
          .expression = expressions};
}

Form scalar_form(KeyKind kind, const KeyDoc& k) {
  Form f;
  switch (kind) {
    case KeyKind::boolean:
      f.types = {json_text("boolean")};
      break;
    case KeyKind::integer:
    case KeyKind::number:
      f.types = {json_text(kind == KeyKind::integer ? "integer" : "number")};
      add_limits(kind, k.range, f.limits);
      break;
    case KeyKind::choice:
      f.types = {json_text("string")};
      for (std::string_view c : k.choices) f.texts.push_back(json_text(c));
      break;
    case KeyKind::any:
      break;
    default:
      f.types = {json_text("string"), json_text("number"), json_text("boolean")};
  }
  return f;
}

Form list_form(KeyKind kind, const KeyDoc& k, bool expressions) {
  Form f = scalar_form(kind, k);
  const std::string item = schema_of(f, k.doc, {.expression = expressions});
  f.types.push_back(json_text("array"));
  f.limits.push_back(json_member("items", item));
  return f;
}

Form joined(Form a, const Form& b) {
  append(a.types, b.types);
  append(a.limits, b.limits);
  a.texts = b.texts;
  return a;
}

}  // namespace dpt
