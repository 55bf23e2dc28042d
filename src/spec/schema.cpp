#include "spec/schema.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/json_text.h"
#include "spec/language.h"
#include "spec/model.h"

namespace dpt {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}
std::string list(const std::vector<std::string>& parts) { return "[" + joined(parts) + "]"; }
std::string object(const std::vector<std::string>& members) { return "{" + joined(members) + "}"; }
std::string member(std::string_view key, const std::string& value) {
  return json_text(key) + ": " + value;
}
template <class Strings>
std::string quoted_list(const Strings& strings) {
  std::vector<std::string> parts;
  for (const auto& s : strings) parts.push_back(json_text(s));
  return list(parts);
}
std::string any_of(std::vector<std::string> parts) {
  return parts.size() == 1 ? parts[0] : object({member("anyOf", list(parts))});
}
std::string type(std::string_view name) { return object({member("type", json_text(name))}); }
std::string reference(std::string_view name) {
  return object({member("$ref", json_text(fmt::format("#/definitions/{}", name)))});
}
std::string array_of(const std::string& item) {
  return object({member("type", json_text("array")), member("items", item)});
}

// One JSON text on lines of its own for each member, two blanks a level.
std::string pretty(std::string_view json) {
  std::string out;
  size_t level = 0;
  bool inside = false;  // a string
  const auto line = [&] { out += "\n" + std::string(2 * level, ' '); };
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inside) {
      out += c;
      if (c == '\\') out += json[++i];
      if (c == '"') inside = false;
    } else if (c == '{' || c == '[') {
      out += c;
      const bool empty = i + 1 < json.size() && (json[i + 1] == '}' || json[i + 1] == ']');
      if (empty)
        out += json[++i];
      else
        ++level, line();
    } else if (c == '}' || c == ']') {
      --level, line();
      out += c;
    } else if (c == ',') {
      out += c, line();
    } else if (c != ' ' || json[i - 1] == ':') {
      out += c;
      inside = c == '"';
    }
  }
  return out + "\n";
}

// A number in a schema; a spec's .inf has no JSON.
void add_limits(const Range& r, std::vector<std::string>& members) {
  if (std::isfinite(r.low))
    members.push_back(
        member(r.above_low ? "exclusiveMinimum" : "minimum", fmt::format("{}", r.low)));
  if (std::isfinite(r.high))
    members.push_back(
        member(r.below_high ? "exclusiveMaximum" : "maximum", fmt::format("{}", r.high)));
}

class Schema {
 public:
  explicit Schema(const Vocabulary& v) : vocabulary_(v) {}

  std::string text() {
    const std::vector<KeyDoc> top = top_keys(vocabulary_).describe();
    std::vector<std::string> required;
    for (const KeyDoc& k : top)
      if (k.required()) required.emplace_back(k.name);
    const std::string batch =
        R"("oneOf": [{"required": ["batch_size"]}, {"required": ["batch_size_per_replica"]}])";
    const std::string whole =
        object({member("required", quoted_list(required)),
                member("properties",
                       object({member("data", "{\"required\": [\"dataset\"], " + batch + "}")}))});
    const std::string extends = R"({"not": {"required": ["extends"]}})";
    return pretty(
        object({member("$schema", json_text("http://json-schema.org/draft-07/schema#")),
                member("title", json_text("dptrain spec")), member("type", json_text("object")),
                member("additionalProperties", "false"),
                member("properties", object(properties(top, false))), member("if", extends),
                member("then", whole), member("definitions", object(definitions()))}));
  }

 private:
  std::vector<std::string> definitions() {
    std::vector<std::string> out;
    out.push_back(member("expression", object({member("type", json_text("string")),
                                               member("pattern", json_text("\\$\\{.*\\}"))})));
    for (const WordList& w : word_lists())
      out.push_back(member(w.what, w.list == "layers" ? layer_item() : choice(w)));
    out.push_back(member("block", map(block_keys(), false, true)));
    return out;
  }

  // ${...} may stand for any value of a layer, since it may stand in a block.
  std::string scalar(KeyKind kind, const KeyDoc& k, bool expressions) {
    std::vector<std::string> members;
    switch (kind) {
      case KeyKind::boolean:
        members = {member("type", json_text("boolean"))};
        break;
      case KeyKind::integer:
        members = {member("type", json_text("integer"))};
        break;
      case KeyKind::number:
        members = {member("type", json_text("number"))};
        break;
      case KeyKind::choice:
        members = {member("enum", quoted_list(k.choices))};
        break;
      default:
        return R"({"type": ["string", "number", "boolean"]})";
    }
    if (kind == KeyKind::integer || kind == KeyKind::number) add_limits(k.range, members);
    const std::string plain = object(members);
    return expressions ? any_of({plain, reference("expression")}) : plain;
  }

  std::string value(const KeyDoc& k, bool expressions) {
    if (!k.schema.empty()) return k.schema;
    const auto one_or_many = [&](KeyKind kind) {
      const std::string item = scalar(kind, k, expressions);
      return any_of({item, array_of(item)});
    };
    if (k.words == "blocks")
      return R"({"type": "object", "additionalProperties": {"$ref": "#/definitions/block"}})";
    if (!k.words.empty()) return named(k);
    if (!k.keys.empty()) {
      std::vector<std::string> ways = {map(k.keys, expressions, true)};
      if (k.main) ways.insert(ways.begin(), value(k.keys[0], expressions));
      if (k.type == KeyKind::boolean) ways.insert(ways.begin(), type("boolean"));
      return any_of(ways);
    }
    switch (k.type) {
      case KeyKind::integers:
        return one_or_many(KeyKind::integer);
      case KeyKind::numbers:
        return one_or_many(KeyKind::number);
      case KeyKind::texts:
        return one_or_many(KeyKind::text);
      case KeyKind::any:
        return "{}";
      default:
        return scalar(k.type, k, expressions);
    }
  }

  static std::string named(const KeyDoc& k) {
    const auto w = std::ranges::find(word_lists(), k.words, &WordList::list);
    const std::string one = reference(w->what);
    if (k.words == "layers") return array_of(one);  // a model is always a list
    return k.many ? any_of({one, array_of(one)}) : one;
  }

  std::vector<std::string> properties(const std::vector<KeyDoc>& keys, bool expressions) {
    std::vector<std::string> out;
    for (const KeyDoc& k : keys) {
      std::string of = value(k, expressions);
      if (!k.required()) of = any_of({of, type("null")});
      const std::string about =
          fmt::format("{}{}", k.doc, k.required() ? "" : fmt::format(" (default: {})", k.fallback));
      out.push_back(member(
          k.name, object({member("description", json_text(about)), member("allOf", list({of}))})));
    }
    return out;
  }

  // `strict`: with what is required; not for `data`, which a file that extends another may leave
  // out.
  std::string map(const std::vector<KeyDoc>& keys, bool expressions, bool strict) {
    std::vector<std::string> required;
    for (const KeyDoc& k : keys)
      if (k.required() && k.name != "dataset") required.push_back(json_text(k.name));
    std::vector<std::string> members = {
        member("type", json_text("object")), member("additionalProperties", "false"),
        member("properties", object(properties(keys, expressions)))};
    if (strict && !required.empty()) members.push_back(member("required", list(required)));
    return object(members);
  }

  // What may stand after a name: nothing, the main value, a map.
  std::string settings(const std::vector<KeyDoc>& keys, bool expressions) {
    std::vector<std::string> ways;
    if (std::ranges::none_of(keys, &KeyDoc::required)) ways.push_back(type("null"));
    if (!keys.empty()) ways.push_back(value(keys[0], expressions));
    ways.push_back(map(keys, expressions, true));
    return any_of(ways);
  }

  // One word with its settings and what may stand beside it.
  std::string entry(std::string_view name, std::string_view summary,
                    const std::vector<KeyDoc>& keys, const std::vector<KeyDoc>& beside,
                    bool expressions) {
    std::vector<std::string> all = properties(beside, expressions);
    all.push_back(member(name, object({member("description", json_text(summary)),
                                       member("allOf", list({settings(keys, expressions)}))})));
    return object({member("type", json_text("object")), member("additionalProperties", "false"),
                   member("properties", object(all)), member("required", list({json_text(name)}))});
  }

  static std::vector<std::string_view> bare(const Words& words) {
    std::vector<std::string_view> names;
    for (const Nameable* w : words)
      if (std::ranges::none_of(w->describe(), &KeyDoc::required)) names.push_back(w->name);
    return names;
  }

  std::string choice(const WordList& w) {
    std::vector<KeyDoc> beside;
    for (const KeyDoc& k : top_keys(vocabulary_).describe())
      if (k.words == w.list) beside = k.keys;
    const Words& words = words_of(vocabulary_, w.list);
    std::vector<std::string> ways = {object({member("enum", quoted_list(bare(words)))})};
    if (!beside.empty()) ways.push_back(any_of({type("null"), map(beside, false, true)}));
    for (const Nameable* n : words)
      ways.push_back(entry(n->name, n->summary, n->describe(), beside, false));
    return any_of(ways);
  }

  std::string layer_item() {
    const std::vector<KeyDoc> beside = item_keys();
    const std::vector<std::string_view> names = names_of(vocabulary_.layers);
    std::vector<std::string> taken;
    for (std::string_view n : names) taken.push_back(json_text(n));
    taken.push_back(json_text("residual"));
    const std::string other = object({member("not", object({member("enum", list(taken))}))});
    std::vector<std::string> ways = {
        object({member("enum", quoted_list(bare(vocabulary_.layers)))})};
    for (const Nameable* n : vocabulary_.layers)
      ways.push_back(entry(n->name, n->summary, n->describe(), beside, true));
    ways.push_back(
        entry("residual", "The sum of two lists of layers.", residual_keys(), beside, true));
    // A block of the user's.
    ways.push_back(object({member("type", json_text("string")), member("allOf", list({other}))}));
    ways.push_back(object({member("type", json_text("object")), member("propertyNames", other),
                           member("properties", object(properties(beside, true))),
                           member("minProperties", "1")}));
    return any_of(ways);
  }

  const Vocabulary& vocabulary_;
};

}  // namespace

const std::vector<WordList>& word_lists() {
  static const std::vector<WordList> lists = {
      {"layers", "Layers", "layer"},
      {"losses", "Losses", "loss"},
      {"optimizers", "Optimizers", "optimizer"},
      {"schedules", "Schedules", "schedule"},
      {"datasets", "Data sets", "dataset"},
      {"transforms", "Transforms", "transform"},
      {"target_transforms", "Target transforms", "target_transform"},
      {"modes", "Parallel modes", "mode"},
      {"precisions", "Precisions", "precision"},
      {"initialisations", "Initialisations", "initialisation"}};
  return lists;
}

std::string json_schema(const Vocabulary& vocabulary) { return Schema(vocabulary).text(); }

}  // namespace dpt
