// Reading tests/fixtures/*.json for tests that go from a spec to numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "graph/interpret.h"
#include "layers/model.h"
#include "paths.h"

namespace dpt::golden {

struct Document {
  std::unique_ptr<SourceFile> file;
  Node root;
};

inline Document read_document(const std::string& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), "cannot read " << path);
  Document doc{
      std::make_unique<SourceFile>(SourceFile{path, {std::istreambuf_iterator<char>(in), {}}}), {}};
  Diagnostics d;
  doc.root = read_yaml(*doc.file, d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  return doc;
}
inline Document read_fixture(const std::string& name) {
  return read_document(test_file("fixtures/") + name + ".json");
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
  if (n.text == ".nan") return NAN;
  if (n.text == ".inf" || n.text == "-.inf") return n.text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
  double value = 0;
  REQUIRE_MESSAGE(parse_scalar(n, value), "not a number: " << n.text);
  return value;
}

struct Tensor {
  Shape shape;
  std::vector<double> data;
};
inline Tensor tensor(const Node& n) {
  std::vector<int64_t> extents;
  for (const Node& e : at(n, "shape").items) extents.push_back(static_cast<int64_t>(number(e)));
  Tensor t{Shape(extents), {}};
  for (const Node& e : at(n, "data").items) t.data.push_back(number(e));
  return t;
}

inline Node map(std::initializer_list<std::pair<std::string, std::string>> entries) {
  Node n;
  n.kind = Node::Kind::map;
  for (const auto& [key, value] : entries) {
    Node scalar;
    scalar.kind = Node::Kind::scalar;
    scalar.text = value;
    n.entries.push_back({{key, {}}, scalar});
  }
  return n;
}
inline Node without(Node n, std::string_view key) {
  std::erase_if(n.entries, [&](const Node::Entry& e) { return e.key.value == key; });
  return n;
}

// What a spec with `name: settings` would choose.
inline Choice choice(const std::vector<const RegistryEntry*>& words, std::string_view name,
                     const Node& settings) {
  const auto word = std::ranges::find(words, name, [](const RegistryEntry* w) { return w->name; });
  REQUIRE_MESSAGE(word != words.end(), "unknown word " << name);
  Diagnostics d;
  Choice c{*word, (*word)->decode(settings, {std::string(name), {}}, d), {}};
  REQUIRE_MESSAGE(d.ok(), d.render());
  return c;
}
inline ModelItem layer(std::string_view name, const Node& settings) {
  ModelItem item;
  item.layer = choice(layer_registry(), name, settings);
  return item;
}

// Calls f with the elements of a view, whatever their type is.
template <class F>
void with_elements(const TensorView& view, F f) {
  switch (view.desc.dtype) {
    case DType::f32:
      return f(view.as<float>());
    case DType::f64:
      return f(view.as<double>());
    case DType::i32:
      return f(view.as<int32_t>());
    case DType::i64:
      return f(view.as<int64_t>());
    case DType::u8:
    case DType::bf16:
    case DType::f16:
      break;
  }
  FAIL("no fixture has " << name_of(view.desc.dtype));
}
// To and from memory, whatever its layout; `data` is in torch's order.
inline void fill(const TensorView& view, const std::vector<double>& data) {
  with_elements(view, [&]<class T>(std::span<T> to) {
    REQUIRE(to.size() == data.size());
    std::vector<T> plain;
    for (double x : data) plain.push_back(static_cast<T>(x));
    copy_layout(view.desc.shape, sizeof(T), Layout::plain,
                reinterpret_cast<const std::byte*>(plain.data()), view.desc.layout, view.data);
  });
}
inline std::vector<double> content(const TensorView& view) {
  std::vector<double> data;
  with_elements(view, [&]<class T>(std::span<T> from) {
    std::vector<T> plain(from.size());
    copy_layout(view.desc.shape, sizeof(T), view.desc.layout, view.data, Layout::plain,
                reinterpret_cast<std::byte*>(plain.data()));
    data.assign(plain.begin(), plain.end());
  });
  return data;
}
inline void fill(HostTensor& t, const std::vector<double>& data) { fill(t.view(), data); }
inline std::vector<double> content(HostTensor& t) { return content(t.view()); }

// A place for every value, f64 where the graph has f32; constants are filled.
inline std::vector<HostTensor> in_double(const Graph& graph) {
  std::vector<HostTensor> values;
  for (const Value& v : graph.values) {
    TensorDesc d = v.desc;
    if (d.dtype == DType::f32) d.dtype = DType::f64;
    values.emplace_back(d);
    if (v.role == Role::constant) fill(values.back(), v.origin->content);
  }
  return values;
}

// What a loss divides by, of an output of that shape.
inline double divisor_number(Divisor divisor, const Shape& output, double target_weight,
                             int class_dim = 1) {
  if (divisor == Divisor::one) return 1;
  if (divisor == Divisor::targets) return target_weight;
  return static_cast<double>(output[0] * terms_per_sample(divisor, output, class_dim));
}

// Each within `tolerance`, absolute below 1 and relative above; nan equals nan.
inline bool close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    if (!(std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(b[i])))) return false;
  }
  return true;
}

}  // namespace dpt::golden
