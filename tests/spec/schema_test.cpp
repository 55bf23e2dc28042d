#include "spec/schema.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "small_registries.h"

namespace dpt {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t i = text.find(what); i != text.npos; i = text.find(what, i + 1)) ++n;
  return n;
}

constexpr const char* kLinear = R"json({
  "description": "Fully connected layer.",
  "propertyNames": {"enum": ["out_features", "bias"]},
  "properties": {
    "out_features": {
      "description": "size of each output sample",
      "exclusiveMinimum": 0,
      "maximum": 9223372036854775807,
      "if": {"type": ["string"], "pattern": "\\$\\{.*\\}"},
      "else": {"type": "integer"}
    },
    "bias": {
      "description": "whether a learned offset is added (default: true)",
      "if": {"type": ["string"], "pattern": "\\$\\{.*\\}"},
      "else": {"type": ["boolean", "null"]}
    }
  },
  "required": ["out_features"],
  "exclusiveMinimum": 0,
  "maximum": 9223372036854775807,
  "if": {"type": ["string"], "pattern": "\\$\\{.*\\}"},
  "else": {"type": ["object", "integer"]}
})json";

// JSON is YAML, but for anchors' sakes: the strict reader checks keys, quotes and brackets.
Node read_json(const SourceFile& file) {
  Diagnostics d;
  Node root = read_yaml(file, d);
  CHECK(d.render() == "");
  return root;
}

const Node& inside(const Node& root, const std::vector<std::string>& path) {
  const Node* at = &root;
  for (const std::string& key : path) {
    at = at->find(key);
    REQUIRE_MESSAGE(at, key);
  }
  return *at;
}

bool lists(const Node& list, const std::string& text) {
  return std::ranges::find(list.items, text, &Node::text) != list.items.end();
}

}  // namespace

TEST_CASE("the JSON Schema is JSON, closed, and has every word and key") {
  const std::string schema = json_schema(test::small_registries());
  const SourceFile file{"schema.json", schema};
  const Node root = read_json(file);
  const Node& properties = inside(root, {"properties"});
  for (const char* key : {"data", "model", "blocks", "loss", "optimizer", "schedule", "devices",
                          "extends", "reproducible", "evaluate", "log", "clip_grad_norm"}) {
    CHECK_MESSAGE(properties.find(key), key);
    CHECK(lists(inside(root, {"propertyNames", "enum"}), key));
  }
  CHECK(!root.find("not"));  // `epochs` and `steps` may stand together
  CHECK(lists(inside(properties, {"seed", "type"}), "null"));
  for (const RegistryInfo& w : registry_infos())
    REQUIRE_MESSAGE(inside(root, {"definitions"}).find(w.what), std::string(w.what));
  const Node& adam = inside(root, {"definitions", "optimizer", "properties", "adam"});
  CHECK(inside(adam, {"description"}).text == "Kingma & Ba 2015.");
  CHECK(inside(adam, {"properties", "lr", "description"}).text == "learning rate (default: 0.001)");
  CHECK(inside(adam, {"properties", "betas", "items", "exclusiveMaximum"}).text == "1");
  // Every map of keys names them; what is open is a use of a block.
  CHECK(count(schema, "\"additionalProperties\": false") == 0);
  CHECK(count(schema, "anyOf") == 2);  // of `if`s: no value is told by alternatives
  CHECK(count(schema, "oneOf") == 0);
}

TEST_CASE("a layer in the JSON Schema has its types, keys, limits and meaning") {
  const std::string schema = json_schema(test::small_registries());
  const SourceFile file{"schema.json", schema};
  const Node root = read_json(file);
  const SourceFile expected{"expected.json", kLinear};
  CHECK(to_yaml(inside(root, {"definitions", "layer", "properties", "linear"})) ==
        to_yaml(read_json(expected)));
}

TEST_CASE("the JSON Schema knows all names of layers in a spec without blocks") {
  const SourceFile file{"schema.json", json_schema(test::small_registries())};
  const Node root = read_json(file);
  const Node& known = inside(root, {"definitions", "known_layer"});
  for (const char* name : {"linear", "relu", "residual"}) {
    CHECK(lists(inside(known, {"then", "propertyNames", "enum"}), name));
    CHECK(lists(inside(known, {"else", "then", "enum"}), name));
  }
  const Node& rule = inside(root, {"allOf"}).items.at(1);
  CHECK(inside(rule, {"if", "not", "anyOf"}).items.size() == 2);  // blocks, extends
  CHECK(inside(rule, {"then", "properties", "model", "items", "$ref"}).text ==
        "#/definitions/known_layer");
}

TEST_CASE("the reference page has each word and key with its default") {
  const std::string page = reference_page(test::small_registries());
  CHECK(page.find(
            "| `out_features` | integer, positive | required | size of each output sample |\n") !=
        std::string::npos);
  CHECK(page.find("| `p` | number, between 0 and 1 | 0.5 | probability of a zero |\n") !=
        std::string::npos);
  CHECK(page.find("| `reduction` | `mean`, `sum` | mean | how terms become one number |\n") !=
        std::string::npos);
  for (const char* heading : {"## Top level", "### `data`", "### `residual`", "### `blocks`",
                              "## Layers", "### `relu`", "## Parallel modes", "### `ddp`"})
    CHECK_MESSAGE(page.find(std::string(heading) + "\n") != std::string::npos, heading);
}

TEST_CASE("one word is explained with its keys") {
  CHECK(explain(test::small_registries(), "dropout") ==
        "layer 'dropout': Zeros at random.\n"
        "  p  probability of a zero (a number, between 0 and 1; default: 0.5)\n");
  CHECK(explain(test::small_registries(), "relu") ==
        "layer 'relu': max(x, 0).\n  takes no settings\n");
  CHECK(explain(test::small_registries(), "data.limit") ==
        "key 'limit' of 'data': use only the first N samples; 0: all (an integer, not negative; "
        "default: 0)\n");
  // Keys of what a spec can name, with all to which they mean the same.
  const std::string lr = explain(test::small_registries(), "lr");
  CHECK(lr.find("of optimizer 'sgd', 'adam', 'adam_w': learning rate (a number, not negative; "
                "default: 0.001)\n") != std::string::npos);
  CHECK(lr.starts_with("key 'lr' of 'parameter_groups': learning rate; none: the optimizer's"));
  CHECK(explain(test::small_registries(), "optimizer.lr") == lr.substr(lr.find('\n') + 1));
  CHECK(explain(test::small_registries(), "momentum")
            .starts_with("key 'momentum' of optimizer 'sgd': "));
  CHECK(explain(test::small_registries(), "sgd.momentum") ==
        explain(test::small_registries(), "momentum"));
  CHECK(explain(test::small_registries(), "data.dataset.samples")
            .starts_with("key 'samples' of dataset"));
  CHECK(explain(test::small_registries(), "schedule.momentum").empty());
  CHECK(nearest_word(test::small_registries(), "momentun") == "momentum");
  // What a key can name.
  for (const auto& [key, choice] : {std::pair("optimizer", "  adam  "),
                                    {"dataset", "  synthetic_images  "},
                                    {"loss", "  cross_entropy  "},
                                    {"schedule", "  multi_step  "}}) {
    const std::string text = explain(test::small_registries(), key);
    CHECK_MESSAGE(text.find(choice) != std::string::npos, text);
  }
  // A word with two meanings has both.
  CHECK(count(explain(test::small_registries(), "batch_size"), "key 'batch_size'") == 2);
  CHECK(explain(test::small_registries(), "repeat").find("an entry of 'model'") !=
        std::string::npos);
  CHECK(explain(test::small_registries(), "lineer").empty());
  CHECK(nearest_word(test::small_registries(), "lineer") == "linear");
  CHECK(nearest_word(test::small_registries(), "CrossEntropyLoss") == "cross_entropy");
  CHECK(nearest_word(test::small_registries(), "btach_size") == "batch_size");
  CHECK(nearest_word(test::small_registries(), "xylophone").empty());
}

}  // namespace dpt
