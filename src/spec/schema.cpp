#include "spec/schema.h"

#include <algorithm>

#include <fmt/format.h>

#include "formats/json.h"
#include "spec/language.h"
#include "spec/model.h"
#include "spec/schema_form.h"

// Note [errors]: validators report a wrong value at its own location only if no anyOf or oneOf
// encloses it; otherwise they report that no alternative matches. So each key has its schema under
// "properties", "propertyNames" lists the keys, and dependencies on other values use "if".
namespace dpt {
namespace {

constexpr const char* kWord = "^[A-Za-z0-9_-]+$";  // a name chosen by the user
Json is_text() { return {{"type", "string"}}; }

Json reference(std::string_view name) { return {{"$ref", fmt::format("#/definitions/{}", name)}}; }

Json::Array name_list(const std::vector<KeyDoc>& keys) {
  Json::Array out;
  for (const KeyDoc& k : keys) out.emplace_back(k.name);
  return out;
}

Json::Array name_list(const Registry& registry) {
  Json::Array out;
  for (const RegistryEntry* w : registry) out.emplace_back(w->name);
  return out;
}

Json one_of(const Json::Array& names) { return {{"enum", names}}; }

Json required(const Json& name) { return {{"required", Json::array({name})}}; }

bool needs_settings(const RegistryEntry* n) {
  return std::ranges::any_of(n->describe(), &KeyDoc::required);
}

std::string about(const KeyDoc& k) {
  return fmt::format("{}{}", k.doc, k.required() ? "" : fmt::format(" (default: {})", k.fallback));
}

class Schema {
 public:
  explicit Schema(const Registries& v)
      : registries_(v), layers_(name_list(v.layers)), beside_(name_list(item_keys())) {
    layers_.emplace_back("residual");
    entry_keys_ = layers_;
    append(entry_keys_, beside_);
  }

  Json whole() {
    const std::vector<KeyDoc> top = top_keys(registries_).describe();
    return {{"$schema", "http://json-schema.org/draft-07/schema#"},
            {"title", "dptrain spec"},
            {"type", "object"},
            {"propertyNames", one_of(name_list(top))},
            {"properties", properties(top, false)},
            {"allOf", Json::array({complete(top), known_names(), no_expressions()})},
            {"definitions", definitions()}};
  }

 private:
  // The keys that a file needs unless it extends another.
  static Json complete(const std::vector<KeyDoc>& top) {
    Json::Array needed;
    for (const KeyDoc& k : top)
      if (k.required()) needed.emplace_back(k.name);
    const Json per_replica = {{"batch_size_per_replica", {{"type", "integer"}}}};
    const Json no_batch = {{"batch_size", {{"enum", Json::array({nullptr, "none"})}}}};
    const Json batch = {
        {"batch_size", {{"type", Json::array({"integer", "string"})}, {"pattern", "^auto$"}}}};
    const Json data = {
        {"required", Json::array({"dataset"})},
        {"if",
         {{"required", Json::array({"batch_size_per_replica"})}, {"properties", per_replica}}},
        {"then", {{"properties", no_batch}}},
        {"else", {{"required", Json::array({"batch_size"})}, {"properties", batch}}}};
    return {{"if", {{"not", required("extends")}}},
            {"then", {{"required", needed}, {"properties", {{"data", data}}}}}};
  }

  // Blocks have names chosen by the user, which a schema cannot look up. A file without blocks can
  // only name built-in layers.
  static Json known_names() {
    const Json others = {{"anyOf", Json::array({required("blocks"), required("extends")})}};
    const Json model = {{"model", {{"items", reference("known_layer")}}}};
    return {{"if", {{"not", others}}}, {"then", {{"properties", model}}}};
  }

  static Json no_expressions() {
    return {{"properties", {{"blocks", Json::object()}}},
            {"additionalProperties", reference("no_expression")}};
  }

  Json definitions() {
    Json out;
    for (const RegistryInfo& w : registry_infos())
      out.add(std::string(w.what), w.list == "layers" ? layer() : choice(w));
    out.add("block",
            schema_of(map_form(block_keys(), false), "a list of layers with parameters", {}));
    out.add("known_layer", known_layer());
    const Json inside = reference("no_expression");
    out.add("no_expression", {{"if", is_text()},
                              {"then", {{"not", {{"pattern", R"(\$\{)"}}}}},
                              {"else", {{"items", inside}, {"additionalProperties", inside}}}});
    return out;
  }

  Form form_of(const KeyDoc& k, bool expressions) {
    if (!k.schema.is_null()) return {.other = k.schema};
    if (k.registry == "blocks") return blocks_form();
    if (k.registry == "layers") {
      Form f{.types = {"array"}, .limits = {{"items", reference("layer")}}};
      if (k.required()) f.limits.emplace_back("minItems", 1);
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
    const Json one = reference(w->what);
    if (!k.many) return {.other = one};
    return {
        .other = {
            {"items", one}, {"if", {{"type", "array"}}}, {"then", Json::object()}, {"else", one}}};
  }

  Form blocks_form() const {
    const Json names = {{"pattern", kWord}, {"not", one_of(entry_keys_)}};
    return {.types = {"object"},
            .limits = {{"propertyNames", names}, {"additionalProperties", reference("block")}}};
  }

  // A map of keys; with `main`, the value of its first key may replace the map.
  Form section_form(const KeyDoc& k, bool expressions) {
    Form map = map_form(k.keys, expressions);
    if (k.many) {  // a list of maps; a map is a list of one
      const Json item = schema_of(map, k.doc, {});
      return joined(map, {.types = {"array"}, .limits = {{"items", item}}});
    }
    if (k.type == KeyKind::boolean) map.types.emplace_back("boolean");
    if (!k.main) return map;
    const Form main = form_of(k.keys[0], expressions);
    if (main.other.is_null()) return joined(map, main);
    // The main value may itself be a map, with other keys.
    Json any;
    for (const Json& name : name_list(k.keys)) any.push(required(name));
    return {.other = {{"if", {{"type", "object"}, {"anyOf", any}}},
                      {"then", map.limits},
                      {"else", main.other}}};
  }

  Json::Object properties(const std::vector<KeyDoc>& keys, bool expressions) {
    Json::Object out;
    for (const KeyDoc& k : keys)
      out.emplace_back(k.name,
                       schema_of(form_of(k, expressions), about(k), also_of(k, expressions)));
    return out;
  }

  // `dataset` is required elsewhere: a file that extends another may omit it.
  Form map_form(const std::vector<KeyDoc>& keys, bool expressions) {
    Form f{.types = {"object"}};
    if (keys.empty()) {
      f.limits.emplace_back("maxProperties", 0);
      return f;
    }
    Json::Array needed;
    for (const KeyDoc& k : keys)
      if (k.required() && k.name != "dataset") needed.emplace_back(k.name);
    f.limits = {{"propertyNames", one_of(name_list(keys))},
                {"properties", properties(keys, expressions)}};
    if (!needed.empty()) f.limits.emplace_back("required", needed);
    return f;
  }

  // What may follow a name: nothing, the main value, or a map.
  Json settings(std::string_view summary, const std::vector<KeyDoc>& keys, bool expressions) {
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

  Json::Object all_settings(const Registry& registry, bool expressions) {
    Json::Object out;
    for (const RegistryEntry* n : registry)
      out.emplace_back(n->name, settings(n->summary, n->describe(), expressions));
    return out;
  }

  // Entries with required settings cannot be given by name only.
  static Json not_bare(const Json::Array& names) {
    return {{"if", one_of(names)}, {"then", {{"type", "object"}}}};
  }
  static Json::Array needing(const Registry& registry) {
    Json::Array out;
    for (const RegistryEntry* n : registry)
      if (needs_settings(n)) out.emplace_back(n->name);
    return out;
  }

  // Beside each of the names, only the keys in `beside` may appear.
  static Json::Array alone(const Json::Array& names, const Json::Array& beside) {
    Json::Array out;
    for (const Json& name : names) {
      Json::Array keys = {name};
      append(keys, beside);
      out.push_back({{"if", {{"type", "object"}, {"required", Json::array({name})}}},
                     {"then", {{"propertyNames", one_of(keys)}}}});
    }
    return out;
  }

  // A name, or a map with a name, its settings, and the keys that may appear beside it.
  Json choice(const RegistryInfo& w) {
    std::vector<KeyDoc> beside;
    for (const KeyDoc& k : top_keys(registries_).describe())
      if (k.registry == w.list) beside = k.keys;
    const Registry& registry = registry_of(registries_, w.list);
    const Json::Array names = name_list(registry), needs = needing(registry);
    const bool in_blocks = w.list == "initialisations";
    Json::Array keys = names;
    append(keys, name_list(beside));
    Json::Object all = all_settings(registry, in_blocks);
    append(all, properties(beside, false));
    Json out = {{"type", Json::array({"string", "object"})},
                {"if", is_text()},
                {"then", one_of(names)},
                {"propertyNames", one_of(keys)},
                {"properties", all},
                {"minProperties", 1}};
    Json::Array rules;
    if (!needs.empty()) rules.push_back(not_bare(needs));
    if (beside.empty()) {
      out.add("maxProperties", 1);
    } else {
      append(rules, alone(names, name_list(beside)));
    }
    if (!rules.empty()) out.add("allOf", rules);
    return out;
  }

  // An entry of a list of layers: a built-in layer or a block.
  Json layer() {
    Json::Object all = all_settings(registries_.layers, true);
    all.emplace_back("residual",
                     settings("The sum of two lists of layers.", residual_keys(), true));
    append(all, properties(item_keys(), true));
    Json::Array needs = needing(registries_.layers);
    needs.emplace_back("residual");
    const std::string word = fmt::format(R"({}|\$\{{.*\}})", kWord);
    Json::Array rules = {not_bare(needs), {{"properties", {{"name", {{"pattern", word}}}}}}};
    append(rules, alone(layers_, beside_));
    const Json nameless = {{"type", "object"}, {"propertyNames", one_of(beside_)}};
    return {{"type", Json::array({"string", "object"})},
            {"pattern", word},
            {"propertyNames", {{"pattern", kWord}}},
            {"not", nameless},
            {"properties", all},
            {"allOf", rules}};
  }

  // Restricts an entry to built-in names; used in addition to `layer`, which checks the rest.
  Json known_layer() const {
    const Json items = {{"items", reference("known_layer")}};
    const Json residual = {{"items", reference("known_layer")},
                           {"properties", {{"body", items}, {"shortcut", items}}}};
    const Json unknown = {{"type", "object"}, {"propertyNames", {{"not", one_of(layers_)}}}};
    return {{"properties", {{"residual", residual}}},
            {"if", unknown},
            {"then", {{"propertyNames", one_of(entry_keys_)}}},
            {"else", {{"if", is_text()}, {"then", one_of(layers_)}}}};
  }

  const Registries& registries_;
  Json::Array layers_, beside_, entry_keys_;  // names; entry_keys_: both of them
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

std::string json_schema(const Registries& registries) { return Schema(registries).whole().lines(); }

}  // namespace dpt
