#include "spec/model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "small_registries.h"

namespace dpt {
namespace {

using test::complaints;
using test::Read;
using test::with_rest;

// "lin1=linear(200) [relu, ...]" of a list, with torch's names of the entries.
std::string text_of(const std::vector<ModelItem>& items, const std::string& prefix = "") {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    const ModelItem& m = items[i];
    const std::string name = prefix + (m.name.empty() ? std::to_string(i) : m.name);
    if (m.kind == ModelItem::Kind::layer) {
      out += name + "=" + std::string(m.layer.what ? m.layer.what->name : "?");
      if (const auto* linear = std::any_cast<test::Linear>(&m.layer.settings))
        out += fmt::format("({})", linear->out_features);
      if (const auto* dropout = std::any_cast<test::Dropout>(&m.layer.settings))
        out += fmt::format("({})", dropout->p);
    } else {
      if (m.kind == ModelItem::Kind::residual) out += name + "=residual ";
      out += text_of(m.body, name + ".");
      if (m.has_shortcut) out += "| " + text_of(m.shortcut, name + ".");
    }
    for (const auto& f : m.from) out += "<" + f.value;
    if (m.freeze) out += "!";
    if (m.kind == ModelItem::Kind::layer) out += " ";
  }
  return out;
}

std::string model(const std::string& text) {
  const Read r(with_rest(text));
  return r.d.ok() ? text_of(r.spec.model) : r.d.render();
}

constexpr const char* kBlock =
    "blocks:\n"
    "  mlp:\n"
    "    parameters: {width: 64, p: 0.1}\n"
    "    layers:\n"
    "      - linear: ${width}\n"
    "        name: lin\n"
    "      - dropout: ${p}\n";

}  // namespace

TEST_CASE("entries, and the keys beside their layers") {
  CHECK(
      model("model:\n  - flatten\n  - linear: 200\n    name: lin1\n  - relu:\n    from: lin1\n"
            "  - add:\n    from: [lin1, \"2\"]\n  - {linear: {out_features: 3}, freeze: true}\n") ==
      "0=flatten lin1=linear(200) 2=relu<lin1 3=add<lin1<2 4=linear(3)! ");
}

TEST_CASE("repeat makes a sequence, named as nn.Sequential does") {
  CHECK(model("model:\n  - linear: 3\n    name: l\n    repeat: 2\n  - relu:\n    repeat: 1\n") ==
        "l.0=linear(3) l.1=linear(3) 1.0=relu ");
}

TEST_CASE("residuals with and without a shortcut") {
  CHECK(model("model:\n  - residual: {body: [{linear: 4}, relu], shortcut: [{linear: 4}]}\n"
              "    name: r\n  - residual: [relu]\n  - residual: {body: [relu], shortcut: []}\n") ==
        "r=residual r.0=linear(4) r.1=relu | r.0=linear(4) 1=residual 1.0=relu 2=residual 2.0=relu "
        "| ");
}

TEST_CASE("blocks: defaults, settings, the main value, names and repeats") {
  const std::string blocks = kBlock;
  CHECK(model(blocks + "model:\n  - mlp\n  - mlp: {width: 128}\n    name: b\n  - mlp: 3\n") ==
        "0.lin=linear(64) 0.1=dropout(0.1) b.lin=linear(128) b.1=dropout(0.1) "
        "2.lin=linear(3) 2.1=dropout(0.1) ");
  CHECK(model(blocks + "model:\n  - mlp: {p: 0.5}\n    name: layer1\n    repeat: 2\n") ==
        "layer1.0.lin=linear(64) layer1.0.1=dropout(0.5) layer1.1.lin=linear(64) "
        "layer1.1.1=dropout(0.5) ");
}

TEST_CASE("blocks in blocks, with the outer one's parameters") {
  CHECK(model("blocks:\n"
              "  outer:\n    parameters: {n: 2, twice: \"${n * 2}\"}\n"
              "    layers:\n      - inner: {w: \"${twice + 1}\"}\n        repeat: ${n}\n"
              "      - linear: ${twice}\n"
              "  inner: {parameters: {w: null}, layers: [{linear: \"${w}\"}]}\n"
              "model: [outer, {outer: 1}]\n") ==
        "0.0.0.0=linear(5) 0.0.1.0=linear(5) 0.1=linear(4) 1.0.0.0=linear(3) 1.1=linear(2) ");
}

TEST_CASE("expressions: integers stay integers, text is put in") {
  const auto width = [](const std::string& expression) {
    return model(
        "blocks:\n  b:\n    parameters: {n: 64, m: 3, x: 0.5, w: lin}\n    layers:\n"
        "      - linear: " +
        expression + "\nmodel: [b]\n");
  };
  CHECK(width("${n * 4 / 2 + 1}") == "0.0=linear(129) ");
  CHECK(width("${(n + m) * 2 - 4}") == "0.0=linear(130) ");
  CHECK(width("${n // m}") == "0.0=linear(21) ");
  CHECK(width("${-n // m + 30}") == "0.0=linear(8) ");
  CHECK(width("${n % m}") == "0.0=linear(1) ");
  CHECK(width("${-m % 2 + 1 }") == "0.0=linear(2) ");
  CHECK(width("${n - -m}") == "0.0=linear(67) ");
  CHECK(width("\"${n}\"") == "0.0=linear(64) ");
  CHECK(width("1${m}") == "0.0=linear(13) ");
  CHECK(width("${n}\n        name: ${w}_${m}_${n * 2}") == "0.lin_3_128=linear(64) ");
  // What has a point is real, and no integer.
  CHECK(width("${n * x}").find("must be an integer, not '32") != std::string::npos);
  CHECK(model("blocks: {b: {parameters: {x: 0.5}, layers: [{dropout: \"${x / 2 + 1e-1}\"}]}}\n"
              "model: [b]\n") == "0.0=dropout(0.35) ");
}

TEST_CASE("quoted numbers as parameters stay text") {
  CHECK(complaints(with_rest("blocks: {b: {parameters: {n: \"3\"}, layers: [{linear: \"${n}\"}]}}\n"
                             "model: [b]\n"))
            .find("remove the quotes") != std::string::npos);
}

TEST_CASE("lists as parameters go where they stand alone") {
  const Read r(
      with_rest("blocks: {b: {parameters: {s: [2, 3]}, layers: [{layer_norm: \"${s}\"}]}}\n"
                "model: [b]\n"));
  REQUIRE(r.d.render() == "");
  const auto& settings = r.spec.model[0].body[0].layer.settings;
  CHECK(std::any_cast<const test::LayerNorm&>(settings).normalized_shape ==
        std::vector<int64_t>{2, 3});
}

// "line:column: message" of the only complaint.
std::string refusal(const std::string& text) {
  const Read r(with_rest(text));
  CHECK(r.d.count() == 1);
  const std::string all = r.d.render();
  return all.substr(7, all.find('\n') - 7);
}

// Blocks b0 to b<levels> of which each calls the next one with ten times what it was given.
std::string laughs(int levels, const std::string& ten, const std::string& last) {
  std::string out = "blocks:\n";
  for (int i = 0; i < levels; ++i)
    out += fmt::format("  b{}: {{parameters: {{p: x}}, layers: [{{b{}: {{p: {}}}}}]}}\n", i, i + 1,
                       ten);
  return out + fmt::format("  b{}: {{parameters: {{p: x}}, layers: [{}]}}\n", levels, last);
}
std::string ten_times(const std::string& one, const std::string& between) {
  std::string out = one;
  for (int i = 1; i < 10; ++i) out += between + one;
  return out;
}

TEST_CASE("what parameters multiply is refused while it is made") {
  const std::string list = "[" + ten_times("\"${p}\"", ", ") + "]";
  CHECK(refusal(laughs(8, list, "relu") + "model: [b0]\n") ==
        "6:103: error: more than 100000 values after blocks and repeats are expanded");
  const std::string text = "\"" + ten_times("${p}", "") + "\"";
  CHECK(refusal(laughs(8, text, "relu") + "model: [b0]\n")
            .find("expands to a text of more than 65536 bytes") != std::string::npos);
  // Many texts that are allowed each.
  const std::string uses = ten_times(ten_times(ten_times("- b0\n", ""), ""), "");
  CHECK(refusal(laughs(4, text, "relu") + "model:\n" + uses)
            .find("more than 4194304 bytes of text") != std::string::npos);
}

TEST_CASE("what repeats multiply is refused before it is made") {
  const std::string shape = "[" + ten_times(ten_times(ten_times("1", ","), ","), ",") + "]";
  CHECK(refusal("model:\n- layer_norm: " + shape + "\n  repeat: 20000\n") ==
        "2:3: error: more than 100000 values after blocks and repeats are expanded");
  const std::string name(1000, 'n');
  CHECK(
      refusal("model:\n- residual: {body: [{linear: 10, name: " + name + "}]}\n  repeat: 5000\n") ==
      "2:3: error: more than 4194304 bytes of text after blocks and repeats are expanded");
  CHECK(refusal("blocks: {b: {layers: [relu, relu]}}\nmodel: [{b: , repeat: 20000}]\n")
            .find("more than 20000 layers") != std::string::npos);
  CHECK(model("model: [{relu: , repeat: 20000}]\n").size() > 20000);
}

TEST_CASE("names of layers inside blocks inside blocks count with those around them") {
  std::string blocks = "blocks:\n";
  for (int i = 0; i < 30; ++i)
    blocks +=
        fmt::format("  b{}: {{layers: [{{b{}: , name: {}}}]}}\n", i, i + 1, std::string(1000, 'n'));
  CHECK(refusal(blocks + "  b30: {layers: [{relu: , repeat: 200}]}\nmodel: [b0]\n")
            .find("more than 4194304 bytes of text") != std::string::npos);
}

TEST_CASE("a default that every use of a block copies is counted") {
  const std::string hundred = "[" + ten_times(ten_times("1", ","), ",") + "]";
  CHECK(refusal("blocks: {b: {parameters: {p: " + hundred + "}, layers: [relu]}}\nmodel:\n" +
                ten_times(ten_times(ten_times("- b\n", ""), ""), ""))
            .find("more than 100000 values") != std::string::npos);
}

TEST_CASE("a chain of blocks deeper than any net is refused") {
  std::string blocks = "blocks:\n";
  for (int i = 0; i < 3000; ++i) blocks += fmt::format("  b{}: {{layers: [b{}]}}\n", i, i + 1);
  blocks += "  b3000: {layers: [relu]}\n";
  CHECK(complaints(with_rest(blocks + "model: [b0]\n")).find("nested more than 32 deep") !=
        std::string::npos);
}

}  // namespace dpt
