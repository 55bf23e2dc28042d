#include "spec/schema.h"

#include <algorithm>

#include <fmt/format.h>

#include "spec/json_pieces.h"
#include "spec/language.h"
#include "spec/model.h"
#include "spec/schema_form.h"

// Note [errors]: validators report a wrong value at its own location only if no anyOf or oneOf
// encloses it; otherwise they report that no alternative matches. So each key has its schema under
// "properties", "propertyNames" lists the keys, and dependencies on other values use "if".
namespace dpt {
namespace {

constexpr const char* kWord = "^[A-Za-z0-9_-]+$";  // a name chosen by the user

std::string reference(std::string_view name) {
  return json_object({json_member("$ref", json_text(fmt::format("#/definitions/{}", name)))});
}

Parts quoted_names(const std::vector<KeyDoc>& keys) {
  Parts out;
  for (const KeyDoc& k : keys) out.push_back(json_text(k.name));
  return out;
}

Parts quoted_names(const Registry& registry) {
  Parts out;
  for (const RegistryEntry* w : registry) out.push_back(json_text(w->name));
  return out;
}

std::string one_of(const Parts& names) {
  return json_object({json_member("enum", json_list(names))});
}

std::string required(const std::string& name) {
  return json_object({json_member("required", json_list({name}))});
}

bool needs_settings(const RegistryEntry* n) {
  return std::ranges::any_of(n->describe(), &KeyDoc::required);
}

std::string about(const KeyDoc& k) {
  return fmt::format("{}{}", k.doc, k.required() ? "" : fmt::format(" (default: {})", k.fallback));
}

class Schema {
 public:
  explicit Schema(const Registries& v)
      : registries_(v), layers_(quoted_names(v.layers)), beside_(quoted_names(item_keys())) {
    layers_.push_back(json_text("residual"));
    entry_keys_ = layers_;
    append(entry_keys_, beside_);
  }

  std::string text() {
    const std::vector<KeyDoc> top = top_keys(registries_).describe();
    return json_lines(json_object(
        {json_member("$schema", json_text("http://json-schema.org/draft-07/schema#")),
         json_member("title", json_text("dptrain spec")), json_member("type", json_text("object")),
         json_member("propertyNames", one_of(quoted_names(top))),
         json_member("properties", json_object(properties(top, false))),
         json_member("allOf", json_list({whole(top), known_names(), no_expressions()})),
         json_member("definitions", json_object(definitions()))}));
  }

 private:
  // The keys that a file needs unless it extends another.
  static std::string whole(const std::vector<KeyDoc>& top) {
    Parts needed;
    for (const KeyDoc& k : top)
      if (k.required()) needed.push_back(json_text(k.name));
    const std::string data =
        R"({"required": ["dataset"], "if": {"required": ["batch_size_per_replica"], )"
        R"("properties": {"batch_size_per_replica": {"type": "integer"}}}, )"
        R"("then": {"properties": {"batch_size": {"enum": [null, "none"]}}}, )"
        R"("else": {"required": ["batch_size"], "properties": {"batch_size": )"
        R"({"type": ["integer", "string"], "pattern": "^auto$"}}}})";
    const std::string properties = json_object({json_member("data", data)});
    const std::string then = json_object(
        {json_member("required", json_list(needed)), json_member("properties", properties)});
    return json_object(
        {json_member("if", R"({"not": {"required": ["extends"]}})"), json_member("then", then)});
  }

  // Blocks have names chosen by the user, which a schema cannot look up. A file without blocks can
  // only name built-in layers.
  static std::string known_names() {
    return R"({"if": {"not": {"anyOf": [{"required": ["blocks"]}, {"required": ["extends"]}]}}, )"
           R"("then": {"properties": {"model": {"items": {"$ref": "#/definitions/known_layer"}}}}})";
  }

  static std::string no_expressions() {
    return R"({"properties": {"blocks": {}}, )"
           R"("additionalProperties": {"$ref": "#/definitions/no_expression"}})";
  }

  Parts definitions() {
    Parts out;
    for (const RegistryInfo& w : registry_infos())
      out.push_back(json_member(w.what, w.list == "layers" ? layer() : choice(w)));
    out.push_back(json_member(
        "block", schema_of(map_form(block_keys(), false), "a list of layers with parameters", {})));
    out.push_back(json_member("known_layer", known_layer()));
    const std::string inside = reference("no_expression");
    out.push_back(json_member(
        "no_expression",
        json_object(
            {json_member("if", R"({"type": "string"})"),
             json_member("then", R"({"not": {"pattern": "\\$\\{"}})"),
             json_member("else", json_object({json_member("items", inside),
                                              json_member("additionalProperties", inside)}))})));
    return out;
  }

  Form form_of(const KeyDoc& k, bool expressions) {
    if (!k.schema.empty()) return {.other = k.schema};
    if (k.registry == "blocks") return blocks_form();
    if (k.registry == "layers") {
      Form f{.types = {json_text("array")}, .limits = {json_member("items", reference("layer"))}};
      if (k.required()) f.limits.emplace_back(R"("minItems": 1)");
      return f;
    }
    if (!k.registry.empty()) return named_form(k);
    if (!k.keys.empty()) return section_form(k, expressions);
    switch (k.type) {
      case KeyKind::integers:
        return list_form(KeyKind::integer, k, expressions);
      case KeyKind::numbers:
        return list_form(KeyKind::number, k, expressions);
      case KeyKind::texts:
        return list_form(KeyKind::text, k, expressions);
      default:
        return scalar_form(k.type, k);
    }
  }

  static Form named_form(const KeyDoc& k) {
    const auto w = std::ranges::find(registry_infos(), k.registry, &RegistryInfo::list);
    const std::string one = reference(w->what);
    if (!k.many) return {.other = one};
    return {.other =
                json_object({json_member("items", one), json_member("if", R"({"type": "array"})"),
                             json_member("then", "{}"), json_member("else", one)})};
  }

  Form blocks_form() const {
    const std::string names = json_object(
        {json_member("pattern", json_text(kWord)), json_member("not", one_of(entry_keys_))});
    return {.types = {json_text("object")},
            .limits = {json_member("propertyNames", names),
                       json_member("additionalProperties", reference("block"))}};
  }

  // A map of keys; with `main`, the value of its first key may replace the map.
  Form section_form(const KeyDoc& k, bool expressions) {
    Form map = map_form(k.keys, expressions);
    if (k.many) {  // a list of maps; a map is a list of one
      const std::string item = schema_of(map, k.doc, {});
      return joined(map, {.types = {json_text("array")}, .limits = {json_member("items", item)}});
    }
    if (k.type == KeyKind::boolean) map.types.push_back(json_text("boolean"));
    if (!k.main) return map;
    const Form main = form_of(k.keys[0], expressions);
    if (main.other.empty()) return joined(map, main);
    // The main value may itself be a map, with other keys.
    Parts any;
    for (const std::string& name : quoted_names(k.keys)) any.push_back(required(name));
    const std::string is_map = json_object(
        {json_member("type", json_text("object")), json_member("anyOf", json_list(any))});
    return {.other = json_object({json_member("if", is_map),
                                  json_member("then", json_object(map.limits)),
                                  json_member("else", main.other)})};
  }

  Parts properties(const std::vector<KeyDoc>& keys, bool expressions) {
    Parts out;
    for (const KeyDoc& k : keys)
      out.push_back(json_member(
          k.name, schema_of(form_of(k, expressions), about(k), also_of(k, expressions))));
    return out;
  }

  // `dataset` is required elsewhere: a file that extends another may omit it.
  Form map_form(const std::vector<KeyDoc>& keys, bool expressions) {
    Form f{.types = {json_text("object")}};
    if (keys.empty()) {
      f.limits.emplace_back(R"("maxProperties": 0)");
      return f;
    }
    Parts needed;
    for (const KeyDoc& k : keys)
      if (k.required() && k.name != "dataset") needed.push_back(json_text(k.name));
    f.limits = {json_member("propertyNames", one_of(quoted_names(keys))),
                json_member("properties", json_object(properties(keys, expressions)))};
    if (!needed.empty()) f.limits.push_back(json_member("required", json_list(needed)));
    return f;
  }

  // What may follow a name: nothing, the main value, or a map.
  std::string settings(std::string_view summary, const std::vector<KeyDoc>& keys,
                       bool expressions) {
    Form f = map_form(keys, expressions);
    Also more{.null = std::ranges::none_of(keys, &KeyDoc::required), .expression = expressions};
    // The main value suffices if no other key is required.
    if (!keys.empty() &&
        std::none_of(keys.begin() + 1, keys.end(), [](const KeyDoc& k) { return k.required(); })) {
      f = joined(f, form_of(keys[0], expressions));
      more.none = also_of(keys[0], expressions).none;
    }
    return schema_of(f, summary, more);
  }

  Parts all_settings(const Registry& registry, bool expressions) {
    Parts out;
    for (const RegistryEntry* n : registry)
      out.push_back(json_member(n->name, settings(n->summary, n->describe(), expressions)));
    return out;
  }

  // Entries with required settings cannot be given by name only.
  static std::string not_bare(const Parts& names) {
    return json_object(
        {json_member("if", one_of(names)), json_member("then", R"({"type": "object"})")});
  }
  static Parts needing(const Registry& registry) {
    Parts out;
    for (const RegistryEntry* n : registry)
      if (needs_settings(n)) out.push_back(json_text(n->name));
    return out;
  }

  // Beside each of the names, only the keys in `beside` may appear.
  static Parts alone(const Parts& names, const Parts& beside) {
    Parts out;
    for (const std::string& name : names) {
      Parts keys = {name};
      append(keys, beside);
      out.push_back(json_object(
          {json_member("if", json_object({json_member("type", json_text("object")),
                                          json_member("required", json_list({name}))})),
           json_member("then", json_object({json_member("propertyNames", one_of(keys))}))}));
    }
    return out;
  }

  // A name, or a map with a name, its settings, and the keys that may appear beside it.
  std::string choice(const RegistryInfo& w) {
    std::vector<KeyDoc> beside;
    for (const KeyDoc& k : top_keys(registries_).describe())
      if (k.registry == w.list) beside = k.keys;
    const Registry& registry = registry_of(registries_, w.list);
    const Parts names = quoted_names(registry), needs = needing(registry);
    const bool in_blocks = w.list == "initialisations";
    Parts keys = names, all = all_settings(registry, in_blocks);
    append(keys, quoted_names(beside));
    append(all, properties(beside, false));
    Parts out = {json_member("type", R"(["string", "object"])"),
                 json_member("if", R"({"type": "string"})"), json_member("then", one_of(names)),
                 json_member("propertyNames", one_of(keys)),
                 json_member("properties", json_object(all))};
    Parts rules;
    if (!needs.empty()) rules.push_back(not_bare(needs));
    out.emplace_back(R"("minProperties": 1)");
    if (beside.empty()) {
      out.emplace_back(R"("maxProperties": 1)");
    } else {
      append(rules, alone(names, quoted_names(beside)));
    }
    if (!rules.empty()) out.push_back(json_member("allOf", json_list(rules)));
    return json_object(out);
  }

  // An entry of a list of layers: a built-in layer or a block.
  std::string layer() {
    Parts all = all_settings(registries_.layers, true);
    all.push_back(json_member("residual",
                              settings("The sum of two lists of layers.", residual_keys(), true)));
    append(all, properties(item_keys(), true));
    Parts needs = needing(registries_.layers);
    needs.push_back(json_text("residual"));
    const std::string word = fmt::format(R"({}|\$\{{.*\}})", kWord);
    Parts rules = {
        not_bare(needs),
        fmt::format(R"({{"properties": {{"name": {{"pattern": {}}}}}}})", json_text(word))};
    append(rules, alone(layers_, beside_));
    const std::string names = json_object({json_member("pattern", json_text(kWord))});
    const std::string nameless = json_object(
        {json_member("type", json_text("object")), json_member("propertyNames", one_of(beside_))});
    return json_object(
        {json_member("type", R"(["string", "object"])"), json_member("pattern", json_text(word)),
         json_member("propertyNames", names), json_member("not", nameless),
         json_member("properties", json_object(all)), json_member("allOf", json_list(rules))});
  }

  // Restricts an entry to built-in names; used in addition to `layer`, which checks the rest.
  std::string known_layer() const {
    const std::string items = json_object({json_member("items", reference("known_layer"))});
    const std::string lists =
        json_object({json_member("body", items), json_member("shortcut", items)});
    const std::string residual = json_object(
        {json_member("items", reference("known_layer")), json_member("properties", lists)});
    const std::string unknown = json_object(
        {json_member("type", json_text("object")),
         json_member("propertyNames", json_object({json_member("not", one_of(layers_))}))});
    return json_object(
        {json_member("properties", json_object({json_member("residual", residual)})),
         json_member("if", unknown),
         json_member("then", json_object({json_member("propertyNames", one_of(entry_keys_))})),
         json_member("else", json_object({json_member("if", R"({"type": "string"})"),
                                          json_member("then", one_of(layers_))}))});
  }

  const Registries& registries_;
  Parts layers_, beside_, entry_keys_;  // quoted names; entry_keys_: both of them
};

}  // namespace

const std::vector<RegistryInfo>& registry_infos() {
  static const std::vector<RegistryInfo> lists = {
      {"layers", "Layers", "layer"},
      {"losses", "Losses", "loss"},
      {"optimizers", "Optimizers", "optimizer"},
      {"schedules", "Schedules", "schedule"},
      {"datasets", "Data sets", "dataset"},
      {"transforms", "Transforms", "transform"},
      {"target_transforms", "Target transforms", "target_transform"},
      {"modes", "Parallel modes", "mode"},
      {"precisions", "Precisions", "precision"},
      {"initialisations", "Initializations", "initialization"}};
  return lists;
}

std::string json_schema(const Registries& registries) { return Schema(registries).text(); }

}  // namespace dpt
