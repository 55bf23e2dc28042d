// The pages that the program writes, and the examples on them.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "golden_text.h"
#include "layers/initialisation.h"
#include "layers/layer.h"
#include "layers/loss.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "session/session.h"
#include "spec/language.h"
#include "spec/model.h"
#include "spec/schema.h"

namespace dpt {
namespace {

std::string indented(const std::string& text) {
  std::string out = "  ";
  for (const char c : text) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out;
}

// Keys of the top level that a spec needs, but not those that `part` has.
std::string whole_spec(const std::string& part) {
  std::string out = part + "\n";
  for (const auto& [key, rest] :
       {std::pair("data:", "data: {dataset: fashion_mnist, batch_size: 100}\n"),
        {"model:", "model: [flatten, linear: 10]\n"},
        {"loss:", "loss: cross_entropy\n"},
        {"optimizer:", "optimizer: {adam: 0.01}\n"}})
    if (!part.starts_with(key)) out += rest;
  return out;
}

// One use of an entry of the list, as part of a spec.
std::string spec_with(std::string_view list, const std::string& use) {
  if (list == "layers") {
    const std::string inputs =
        use.find("from: [left") == use.npos
            ? ""
            : "  - {linear: 4, name: left}\n  - {linear: 4, name: right, from: left}\n";
    return "model:\n" + inputs + indented(use);
  }
  if (list == "initialisations") return "model:\n" + indented(use);
  if (list == "datasets") return "data:\n  batch_size: 100\n" + indented(use);
  if (list == "transforms" || list == "target_transforms")
    return "data:\n  dataset: fashion_mnist\n  batch_size: 100\n" + indented(use);
  return use;
}

// An example may show several uses: a line that does not continue the one before begins one.
std::vector<std::string> uses_of(std::string_view example) {
  std::vector<std::string> out;
  while (!example.empty()) {
    const size_t end = std::min(example.find('\n'), example.size());
    const std::string line(example.substr(0, end));
    if (line.starts_with(' ') && !out.empty())
      out.back() += "\n" + line;
    else
      out.push_back(line);
    example.remove_prefix(std::min(end + 1, example.size()));
  }
  return out;
}

// The values that stand behind `name` anywhere in a tree.
void find_settings(const Node& n, std::string_view name, std::vector<const Node*>& out) {
  for (const Node::Entry& e : n.entries) {
    if (e.key.value == name) out.push_back(&e.value);
    find_settings(e.value, name, out);
  }
  for (const Node& i : n.items) find_settings(i, name, out);
}

struct Use {
  SourceFile file;
  Diagnostics d;
  Node root;
  explicit Use(std::string text) : file{"example.yaml", std::move(text)} {
    root = read_yaml(file, d);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
};

// The settings of an example's last use, decoded.
std::any example_settings(const RegistryEntry& n, std::string_view list) {
  const Use use(spec_with(list, uses_of(n.usage.example).back()));
  std::vector<const Node*> found;
  find_settings(use.root, n.name, found);
  const Node none;
  Diagnostics d;
  return n.decode(found.empty() ? none : *found[0], {std::string(n.name), use.root.where}, d);
}

bool has_one_of(const std::string& text, std::string_view names) {
  while (!names.empty()) {
    const size_t comma = std::min(names.find(", "), names.size());
    std::string_view name = names.substr(0, comma);
    if (name.starts_with("torch.")) name.remove_prefix(6);
    if (text.find(std::string(name) + "(") != text.npos) return true;
    names.remove_prefix(std::min(comma + 2, names.size()));
  }
  return false;
}

// Every key with its section, "" for the top level and "model" for the entries of a model.
std::vector<std::pair<std::string, KeyDoc>> section_keys(const Registries& words) {
  std::vector<std::pair<std::string, KeyDoc>> out;
  for (const KeyDoc& top : top_keys(words).describe()) {
    out.emplace_back("", top);
    for (const KeyDoc& k : top.keys) out.emplace_back(top.name, k);
  }
  for (const KeyDoc& k : item_keys()) out.emplace_back("model", k);
  for (const KeyDoc& k : residual_keys()) out.emplace_back("residual", k);
  for (const KeyDoc& k : block_keys()) out.emplace_back("block", k);
  return out;
}

// A spec with the example of a key of a section.
std::string spec_with_key(const std::string& section, const KeyDoc& key) {
  const std::string example(key.example);
  const std::string pair =
      "  - {linear: 4, name: left}\n  - {linear: 4, name: right, from: left}\n";
  if (section == "model") return "model:\n" + pair + "  - " + example;
  if (section == "residual") return "model:\n  - " + example;
  if (section == "block") return "blocks: {pair: " + example + "}";
  if (section != "data") return example;
  const std::string_view inner = std::string_view(example).substr(7, example.size() - 8);
  std::string out = "data: {" + std::string(inner);
  if (key.name != "dataset") out += ", dataset: fashion_mnist";
  if (!key.name.starts_with("batch_size")) out += ", batch_size: 100";
  return out + "}";
}

}  // namespace

// Renew both with DPT_REWRITE_GOLDEN=1, or with `dptrain schema --markdown` and `dptrain schema`.
TEST_CASE("docs/spec-reference.md and schema/dptrain.schema.json are what the program prints") {
  check_golden(reference_page(registries()), "../docs/spec-reference.md",
               "build/src/dptrain schema --markdown > docs/spec-reference.md");
  check_golden(json_schema(registries()), "../schema/dptrain.schema.json",
               "build/src/dptrain schema > schema/dptrain.schema.json");
}

TEST_CASE("the example of every layer, loss, optimizer, ... is a spec that uses all of its keys") {
  const Registries words = registries();
  for (const RegistryInfo& list : registry_infos())
    for (const RegistryEntry* n : registry_of(words, list.list)) {
      CAPTURE(n->name);
      std::set<std::string_view> missing;
      const std::vector<KeyDoc> keys = n->describe();
      for (const KeyDoc& k : keys) missing.insert(k.name);
      for (const std::string& text : uses_of(n->usage.example)) {
        Use use(whole_spec(spec_with(list.list, text)));
        std::vector<const Node*> found;
        find_settings(use.root, n->name, found);
        for (const Node* settings : found) {
          if (settings->kind != Node::Kind::map && !keys.empty()) missing.erase(keys[0].name);
          for (const Node::Entry& e : settings->entries) missing.erase(e.key.value);
        }
        read_spec(use.root, words, use.d);
        CHECK(use.d.render() == "");
        CHECK(text.find(n->name) != text.npos);
      }
      CHECK(!n->usage.example.empty());
      for (const std::string_view key : missing) CHECK_MESSAGE(false, "no example of ", key);
    }
}

TEST_CASE("the example of every key of the top level, a section and an entry is a spec") {
  const Registries words = registries();
  for (const auto& place : section_keys(words)) {
    const std::string& section = place.first;  // clang 14 captures no structured bindings
    const KeyDoc& key = place.second;
    CAPTURE(section);
    CAPTURE(key.name);
    CHECK(key.example.find(key.name) != key.example.npos);
    if (key.name == "extends" || (section.empty() && key.name == "data")) continue;
    Use use(whole_spec(spec_with_key(section, key)));
    read_spec(use.root, words, use.d);
    CHECK(use.d.render() == "");
  }
}

TEST_CASE("PyTorch's names on the reference page are those of exported programs") {
  for (const LayerType& t : layer_table()) {
    if (!t.usage.torch.starts_with("torch.nn.") || !t.torch_class.empty()) continue;
    const std::any settings = example_settings(t, "layers");
    bool found = false;
    for (const Shape& x : {Shape{2, 8, 8, 8}, Shape{2, 8, 8}, Shape{2, 8}})
      found = found || has_one_of(t.torch(settings, x), t.usage.torch);
    CHECK_MESSAGE(found, std::string(t.name));
  }
  for (const LossType& t : loss_table())
    CHECK_MESSAGE((!t.torch_class.empty() ||
                   has_one_of(t.torch(example_settings(t, "losses")), t.usage.torch)),
                  std::string(t.name));
  for (const OptimizerType& t : optimizer_table())
    CHECK_MESSAGE((!t.torch || !t.torch_class.empty() ||
                   has_one_of(t.torch(example_settings(t, "optimizers")), t.usage.torch)),
                  std::string(t.name));
  for (const ScheduleType& t : schedule_table()) {
    if (t.usage.torch.empty()) continue;  // the rate never changes
    const std::string text = t.torch(example_settings(t, "schedules"), 10);
    CHECK_MESSAGE(has_one_of("optim." + text, t.usage.torch), std::string(t.name));
  }
  for (const InitialisationType& t : initialisation_table())
    CHECK_MESSAGE(
        has_one_of(t.torch(example_settings(t, "initialisations"), "weight"), t.usage.torch),
        std::string(t.name));
}

}  // namespace dpt
