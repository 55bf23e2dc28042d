#include "spec/node.h"

#include <string>

#include <doctest/doctest.h>

#include "base/units.h"

namespace dpt {
namespace {

struct Tree {
  SourceFile file;
  Diagnostics d;
  Node root;
  explicit Tree(std::string text) : file{"n.yaml", std::move(text)}, root(read_yaml(file, d)) {}
  std::string message() const {
    const std::string all = d.render();
    return all.substr(0, all.find('\n'));
  }
};

std::string place(const Span& s) {
  return std::to_string(s.line) + ":" + std::to_string(s.column) + "+" + std::to_string(s.length);
}

bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.quoted != b.quoted) return false;
  if (a.kind == Node::Kind::scalar && a.text != b.text) return false;  // a null is written out
  if (a.items.size() != b.items.size() || a.entries.size() != b.entries.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (size_t i = 0; i < a.entries.size(); ++i)
    if (a.entries[i].key.value != b.entries[i].key.value ||
        !same(a.entries[i].value, b.entries[i].value))
      return false;
  return true;
}

// A random tree of what a file can hold; `fuel` bounds its size.
class Grower {
 public:
  explicit Grower(uint64_t seed) : state_(seed) {}
  Node tree(int depth) {
    Node n;
    const uint64_t kind = depth == 0 ? next(3) : next(6);
    if (kind == 0) return n;
    if (kind < 4) {
      n.kind = Node::Kind::scalar;
      n.quoted = kind == 1;
      n.text = n.quoted ? quoted_text() : plain_text();
    } else if (kind == 4) {
      n.kind = Node::Kind::list;
      for (uint64_t i = next(4); i > 0; --i) n.items.push_back(tree(depth - 1));
    } else {
      n.kind = Node::Kind::map;
      for (uint64_t i = next(4); i > 0; --i)
        n.entries.push_back(
            {{"k" + std::to_string(i) + (next(5) == 0 ? " é\"\\" : ""), {}}, tree(depth - 1)});
    }
    return n;
  }

 private:
  uint64_t next(uint64_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % below;
  }
  std::string quoted_text() {
    static const char* const parts[] = {"a",  " ", "\"", "\\", "\n", "\t",   "'",  ": ",
                                        " #", "é", "{",  "]",  "1",  "null", "- ", "${x}"};
    std::string out;
    for (uint64_t i = next(6); i > 0; --i) out += parts[next(std::size(parts))];
    return out;
  }
  std::string plain_text() {
    static const char* const texts[] = {"a",   "1",    "0.5",      "-3",    ".inf",
                                        "a b", "a,b",  "${x * 2}", "x/y.z", "a:b",
                                        "é",   "true", "1e-3",     "a#b",   "it's"};
    return texts[next(std::size(texts))];
  }
  uint64_t state_;
};

}  // namespace

TEST_CASE("every key and value knows its place, in code points") {
  const Tree t("größe: [é, \"x\\\"y\", {k: }]\nb: |\n  text\nc:\n'd''e': ~\n");
  REQUIRE(t.d.ok());
  REQUIRE(t.root.entries.size() == 4);
  CHECK(place(t.root.entries[0].key.where) == "1:1+5");
  const Node& list = t.root.entries[0].value;
  CHECK(place(list.where) == "1:8+1");
  CHECK(place(list.items[0].where) == "1:9+1");
  CHECK(place(list.items[1].where) == "1:12+6");
  CHECK(list.items[1].text == "x\"y");
  CHECK(list.items[1].quoted);
  CHECK(place(list.items[2].entries[0].value.where) == "1:21+1");  // empty: its key's
  CHECK(t.root.entries[1].value.text == "text\n");
  CHECK(place(t.root.entries[2].value.where) == "4:1+1");
  CHECK(t.root.entries[3].key.value == "d'e");
  CHECK(place(t.root.entries[3].key.where) == "5:1+6");
  CHECK(place(t.root.entries[3].value.where) == "5:9+1");
  CHECK(t.root.find("c") != nullptr);
  CHECK(t.root.find("x") == nullptr);
}

TEST_CASE("part of a text can be read, with the places of the whole") {
  const SourceFile file{"arg", "größe=[1, x]"};
  Diagnostics d;
  const Node n = read_yaml(file, d, 8);
  REQUIRE(n.items.size() == 2);
  CHECK(place(n.items[1].where) == "1:11+1");
}

TEST_CASE("what yaml-cpp lets pass is refused") {
  CHECK(Tree("a: 1\na: 2\n").message() == "n.yaml:2:1: error: this key is given twice");
  CHECK(Tree("a: 1\n---\nb: 1\n").message() ==
        "n.yaml:2:1: error: a second YAML document begins here; a spec is a single document");
  CHECK(Tree("a: &x 1\n").message().starts_with("n.yaml:1:4: error: YAML anchors are not"));
  CHECK(Tree("<<: {a: 1}\n").message().starts_with("n.yaml:1:1: error: YAML merge keys"));
  CHECK(Tree("a: !b c\n").message() == "n.yaml:1:4: error: YAML tags (!name) are not supported");
  CHECK(Tree("a: ! c\n").message() == "n.yaml:1:4: error: YAML tags (!name) are not supported");
  CHECK(Tree("{a: 1}: 2\n").message() == "n.yaml:1:1: error: a key must be a plain word");
  CHECK(Tree("~: 2\n").message() == "n.yaml:1:1: error: a key must be a plain word");
  CHECK(Tree("a: \"x\n").message() == "n.yaml:1:4: error: this text has no closing quote");
  CHECK(Tree("a:\n\tb: 1\n").message() ==
        "n.yaml:2:1: error: tabs are not allowed in indentation; use spaces");
  CHECK(Tree("a: \xc3\n").message() == "n.yaml:1:4: error: not UTF-8");
  CHECK(Tree(std::string("a: \0b\n", 6)).message() ==
        "n.yaml:1:4: error: a file must not contain control characters");
  CHECK(Tree("").root.kind == Node::Kind::null);
  CHECK(Tree("").d.ok());
}

TEST_CASE("control characters are refused, also those of C1, and written as escapes") {
  for (const char* text : {"a: \"\\e[2J\"\n", "a: \x7f\n", "\"\\x9b\": 1\n", "a: \xc2\x9b\n"}) {
    CAPTURE(text);
    CHECK(!Tree(text).d.ok());
  }
  Node odd{.kind = Node::Kind::scalar, .text = "/tmp/\x1b[2J\x7f\xc2\x9b", .quoted = true};
  CHECK(to_yaml(odd) == "\"/tmp/\\x1b[2J\\x7f\\x9b\"\n");
}

TEST_CASE("what is large is refused at once, not read") {
  CHECK(Tree(std::string(2 * kMiB, 'a')).message().find("bytes; at most 1048576") !=
        std::string::npos);
  CHECK(Tree("a: " + std::string((1 << 16) + 1, 'b')).message().find("at most 65536 bytes") !=
        std::string::npos);
  std::string many = "[";
  for (int i = 0; i < 200000; ++i) many += i % 100 == 0 ? "1,\n" : "1,";
  CHECK(Tree(many + "]").message().find("more than 100000 values") != std::string::npos);
  CHECK(Tree(std::string((1 << 17) + 1, '[')).message() ==
        "n.yaml:1:1: error: a line may have at most 131072 bytes");
  CHECK(Tree(std::string(100000, '[')).message().find("are nested more than") != std::string::npos);
  std::string deep;
  for (int i = 0; i < 33; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(Tree(deep).message().find("are nested more than") != std::string::npos);
  std::string fits;
  for (int i = 0; i < 32; ++i) fits += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(Tree(fits).d.ok());
}

TEST_CASE("trees are written as text that reads back the same") {
  const Tree t("a: [1, \"1\", {b: [x, y]}]\nm:\n  - linear: 200\n    name: l\n  - - p\n    - {}\n");
  CHECK(
      to_yaml(t.root) ==
      "a:\n  - 1\n  - \"1\"\n  - b: [x, y]\nm:\n  - linear: 200\n    name: l\n  - - p\n    - {}\n");
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Node tree = Grower(seed * 77 + 5).tree(4);
    if (tree.kind == Node::Kind::null) continue;
    const std::string text = to_yaml(tree);
    CAPTURE(text);
    const Tree again(text);
    REQUIRE(again.d.render() == "");
    REQUIRE(same(tree, again.root));
    REQUIRE(to_yaml(again.root) == text);
  }
}

}  // namespace dpt
