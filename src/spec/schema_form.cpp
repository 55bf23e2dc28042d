#include "spec/schema_form.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace dpt {
namespace {

// Adds a number's limits, including those of its type: 64 bits, or finite.
void add_limits(KeyKind kind, const Range& r, Json::Object& limits) {
  const bool whole = kind == KeyKind::integer;
  const bool ends = whole || !r.infinite;
  using Whole = std::numeric_limits<int64_t>;
  using Real = std::numeric_limits<double>;
  const Json lowest = whole ? Json(Whole::min()) : Json::bare_exponent(Real::lowest());
  const Json highest = whole ? Json(Whole::max()) : Json::bare_exponent(Real::max());
  if (std::isfinite(r.low))
    limits.emplace_back(r.above_low ? "exclusiveMinimum" : "minimum", r.low);
  else if (ends)
    limits.emplace_back("minimum", lowest);
  if (std::isfinite(r.high))
    limits.emplace_back(r.below_high ? "exclusiveMaximum" : "maximum", r.high);
  else if (ends)
    limits.emplace_back("maximum", highest);
}

// The members for the types and words of a Form.
Json::Object type_members(const Form& f, bool null) {
  if (!f.other.is_null()) return {{"allOf", Json::array({f.other})}};
  if (f.types.empty()) return {};
  Json::Array types = f.types;
  if (null) types.emplace_back("null");
  if (!f.texts.empty() && f.types == Json::Array{"string"}) {
    Json::Array texts = f.texts;
    if (null) texts.emplace_back();
    return {{"enum", texts}};
  }
  Json::Object out = {{"type", types.size() == 1 ? types[0] : Json(types)}};
  if (!f.texts.empty()) {
    out.emplace_back("if", Json{{"type", "string"}});
    out.emplace_back("then", Json{{"enum", f.texts}});
  }
  return out;
}

}  // namespace

Json schema_of(const Form& f, std::string_view about, const Also& also) {
  Json::Object out = {{"description", about}};
  append(out, f.limits);
  const bool apart = also.null && !f.other.is_null();  // `other` does not cover null
  std::vector<std::string_view> patterns;
  Json::Array types;
  if (also.none) patterns.emplace_back("^none$");
  if (also.expression) patterns.emplace_back(R"(\$\{.*\})");
  if (!patterns.empty()) types.emplace_back("string");
  if (apart) types.emplace_back("null");
  if (types.empty()) {
    append(out, type_members(f, also.null));
    return out;
  }
  Json exempt = {{"type", types}};
  if (!patterns.empty()) exempt.add("pattern", fmt::format("{}", fmt::join(patterns, "|")));
  out.emplace_back("if", exempt);
  out.emplace_back("else", type_members(f, also.null && !apart));
  return out;
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
      f.types = {"boolean"};
      break;
    case KeyKind::integer:
    case KeyKind::number:
      f.types = {kind == KeyKind::integer ? "integer" : "number"};
      add_limits(kind, k.range, f.limits);
      break;
    case KeyKind::choice:
      f.types = {"string"};
      for (std::string_view c : k.choices) f.texts.emplace_back(c);
      break;
    case KeyKind::any:
      break;
    default:
      f.types = {"string", "number", "boolean"};
  }
  return f;
}

Form list_form(KeyKind kind, const KeyDoc& k, bool expressions) {
  Form f = scalar_form(kind, k);
  const Json item = schema_of(f, k.doc, {.expression = expressions});
  f.types.emplace_back("array");
  f.limits.emplace_back("items", item);
  return f;
}

Form joined(Form a, const Form& b) {
  append(a.types, b.types);
  append(a.limits, b.limits);
  a.texts = b.texts;
  return a;
}

}  // namespace dpt
