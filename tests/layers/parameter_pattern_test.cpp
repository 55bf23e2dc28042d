#include "layers/parameter_pattern.h"

#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {
namespace {

const char* const kNet =
    "blocks:\n"
    "  pair: {layers: [{linear: {out_features: 6, bias: false}}, layer_norm, relu]}\n"
    "model:\n"
    "  - {pair: , name: layer1, repeat: 2}\n"
    "  - {multihead_attention: 2, name: attn}\n"
    "  - residual: {body: [layer_norm], shortcut: [{linear: 6}]}\n"
    "    name: res\n"
    "  - {linear: 3, name: fc}";

// The names of the parameters that a pattern matches.
std::string matched(std::string_view pattern) {
  const ModelText text(kNet);
  REQUIRE(text.diagnostics.ok());
  Diagnostics d;
  const Graph graph =
      build_graph(text.spec, {.input = real({4, 5, 6}), .loss = false, .differentiate = false}, d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  std::string out;
  for (const size_t i : NamedParameters(text.spec, graph).matching(pattern))
    out += (out.empty() ? "" : " ") + graph[graph.parameters[i]].name;
  return out;
}

// What is wrong with a spec's patterns.
std::string complaint(const std::string& keys) {
  ModelText text(keys + "\n" + kNet);
  // The registries of this test know no top-level keys but these.
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  Diagnostics d;
  build_graph(text.spec, {.input = real({4, 5, 6}), .target = real({4, 5, 3})}, d);
  const std::string all = d.render();
  return all.substr(0, all.find('\n'));
}

TEST_CASE("globs: any text, one character, sets; a set that is never closed is itself") {
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("layer1.*", "layer1.0.weight"));
  CHECK_FALSE(glob_matches("layer1.*", "layer10.weight"));
  CHECK(glob_matches("*.weight", "layer1.0.weight"));
  CHECK_FALSE(glob_matches("*.weight", "layer1.0.weights"));
  CHECK(glob_matches("*a*b*", "xxaxxbxaxb"));
  CHECK_FALSE(glob_matches("*a*b", "xxaxxbxc"));
  CHECK(glob_matches("layer?.bias", "layer3.bias"));
  CHECK_FALSE(glob_matches("layer?.bias", "layer.bias"));
  CHECK(glob_matches("layer[12].*", "layer2.x"));
  CHECK_FALSE(glob_matches("layer[12].*", "layer3.x"));
  CHECK(glob_matches("layer[1-3]", "layer3"));
  CHECK_FALSE(glob_matches("layer[!1-3]", "layer3"));
  CHECK(glob_matches("layer[!1-3]", "layer4"));
  CHECK(glob_matches("[]]", "]"));
  CHECK(glob_matches("a[b", "a[b"));
  CHECK_FALSE(glob_matches("a[b", "ab"));
  CHECK_FALSE(glob_matches("", "a"));
}

TEST_CASE("a glob with many stars takes no more than the product of the lengths") {
  std::string glob;
  for (int i = 0; i < 1000; ++i) glob += "*a";
  CHECK_FALSE(glob_matches(glob, std::string(3000, 'a') + "b"));
}

TEST_CASE("patterns match words, modules, names and globs") {
  CHECK(matched("bias") ==
        "layer1.0.1.bias layer1.1.1.bias attn.in_proj_bias attn.out_proj.bias res.body.0.bias "
        "res.shortcut.0.bias fc.bias");
  CHECK(matched("norm") ==
        "layer1.0.1.weight layer1.0.1.bias layer1.1.1.weight layer1.1.1.bias res.body.0.weight "
        "res.body.0.bias");
  CHECK(matched("fc") == "fc.weight fc.bias");
  CHECK(matched("fc.weight") == "fc.weight");
  CHECK(matched("layer1.1") == "layer1.1.0.weight layer1.1.1.weight layer1.1.1.bias");
  CHECK(matched("layer") == "");  // no part of a name
  CHECK(matched("*.shortcut.*") == "res.shortcut.0.weight res.shortcut.0.bias");
  CHECK(matched("attn.out_proj.*") == "attn.out_proj.weight attn.out_proj.bias");
  CHECK(matched("layer1.?.0.weight") == "layer1.0.0.weight layer1.1.0.weight");
  CHECK(matched("") == "");
}

TEST_CASE("a pattern that matches nothing names what it may have meant, at its location") {
  CHECK(complaint("freeze: [layr1]") ==
        "t.yaml:1:10: error: no parameter matches 'layr1'; did you mean 'layer1'?");
  CHECK(complaint("no_decay: fc.weigth") ==
        "t.yaml:1:11: error: no parameter matches 'fc.weigth'; did you mean 'fc.weight'?");
  CHECK(complaint("freeze: [norm, 'lair1.*']") ==
        "t.yaml:1:16: error: no parameter matches 'lair1.*'; did you mean 'layer1.*'?");
  CHECK(complaint("parameter_groups: {match: '*.gamma', lr: 1}") ==
        "t.yaml:1:27: error: no parameter matches '*.gamma'; parameters have names such as "
        "'layer1.0.0.weight', 'layer1.0.1.weight', 'layer1.0.1.bias', 'layer1.1.0.weight', "
        "'layer1.1.1.weight', 'layer1.1.1.bias', 'attn.in_proj_weight', 'attn.in_proj_bias'; "
        "`dptrain plan` lists all");
}

TEST_CASE("frozen parameters have no gradient; if all are frozen, that is an error") {
  const ModelText text("freeze: [norm, fc.bias]\n" + std::string(kNet));
  Diagnostics d;
  const Graph graph =
      build_graph(text.spec, {.input = real({4, 5, 6}), .target = real({4, 5, 3})}, d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  std::string frozen;
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    if (graph.gradients[i] == kNoValue) frozen += graph[graph.parameters[i]].name + " ";
  CHECK(frozen ==
        "layer1.0.1.weight layer1.0.1.bias layer1.1.1.weight layer1.1.1.bias res.body.0.weight "
        "res.body.0.bias fc.bias ");
  CHECK(complaint("freeze: '*'") ==
        "t.yaml:1:9: error: nothing to train: the model's output depends on no trainable "
        "parameter");
}

}  // namespace
}  // namespace dpt
