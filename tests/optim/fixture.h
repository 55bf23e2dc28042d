// The golden files of tests/fixtures/ as trees, and what stands in them as settings and numbers.
#pragma once

#include <algorithm>
#include <any>
#include <fstream>
#include <iterator>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "paths.h"
#include "spec/node.h"
#include "spec/registry_entry.h"

namespace dpt::optim_test {

// A YAML text (JSON is one) with the file that its places point into.
struct Document {
  std::unique_ptr<SourceFile> file;
  Node root;
};

inline Document document(const std::string& path, const std::string& text) {
  Document d{std::make_unique<SourceFile>(SourceFile{path, text}), {}};
  Diagnostics diagnostics;
  d.root = read_yaml(*d.file, diagnostics);
  REQUIRE_MESSAGE(diagnostics.ok(), diagnostics.render());
  return d;
}

// fixture("schedules"): tests/fixtures/schedules.json
inline Document fixture(const std::string& name) {
  const std::string path = test_file("fixtures/") + name + ".json";
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), "cannot read " << path);
  return document(path, {std::istreambuf_iterator<char>(in), {}});
}

inline const Node* find(const Node& map, std::string_view key) {
  for (const Node::Entry& e : map.entries)
    if (e.key.value == key) return &e.value;
  return nullptr;
}

inline const Node& at(const Node& map, std::string_view key) {
  const Node* value = find(map, key);
  REQUIRE_MESSAGE(value, "no key " << key);
  return *value;
}

inline double number(const Node& n) {
  double value = 0;
  REQUIRE_MESSAGE(parse_scalar(n, value), "not a number: " << n.text);
  return value;
}

inline std::vector<double> numbers(const Node& list) {
  std::vector<double> all;
  for (const Node& n : list.items) all.push_back(number(n));
  return all;
}

inline int64_t integer(const Node& n) {
  int64_t value = 0;
  REQUIRE_MESSAGE(parse_scalar(n, value), "not an integer: " << n.text);
  return value;
}

// The row of a table (optimizer_table(), schedule_table()) with that name.
template <class Type>
const Type& row(std::span<const Type> table, std::string_view name) {
  const auto r = std::ranges::find(table, name, &Type::name);
  REQUIRE_MESSAGE(r != table.end(), "no row " << name);
  return *r;
}

inline std::any settings(const RegistryEntry& what, const Node& node) {
  Diagnostics d;
  std::any s = what.decode(node, Owner{"'" + std::string(what.name) + "'", node.where}, d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  return s;
}

inline std::any settings(const RegistryEntry& what, const std::string& text) {
  return settings(what, document("test.yaml", text).root);
}

// What decoding complains of, with places; empty: nothing.
inline std::string complaints(const RegistryEntry& what, const std::string& text) {
  const Document doc = document("test.yaml", text);
  Diagnostics d;
  what.decode(doc.root, Owner{"'" + std::string(what.name) + "'", doc.root.where}, d);
  return d.ok() ? "" : d.render();
}

}  // namespace dpt::optim_test
