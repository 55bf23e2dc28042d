// Keys about parameters as a spec holds them.
#include "spec/parameter_keys.h"

#include <doctest/doctest.h>

#include "data/folder.h"
#include "session/session.h"

namespace dpt {
namespace {

// A spec with more keys, and what it points into.
struct Loaded {
  Folder folder{};
  std::vector<std::unique_ptr<SourceFile>> files{};
  Spec spec{};

  explicit Loaded(const std::string& keys, const std::vector<std::string>& overrides = {},
                  const std::string& base = "") {
    folder.write("base/base.yaml", base);
    const std::string path = folder.write(
        "t.yaml",
        "data: {dataset: {random: {samples: 8, in_features: 4, out_features: 2}}, batch_size: 4}\n"
        "model: [{linear: 2}]\nloss: mse_loss\noptimizer: {sgd: 0.1}\n" +
            keys);
    Diagnostics d;
    spec = load_spec(path, overrides, registries(), files, d);
    REQUIRE_MESSAGE(d.ok(), d.render());
  }
};

std::string text_of(const Patterns& patterns) {
  std::string out;
  for (const Located<std::string>& p : patterns) out += p.value + " ";
  return out;
}

TEST_CASE("patterns are one or a list; null and an empty list are none") {
  CHECK(text_of(Loaded("freeze: 'layer1.*'\n").spec.freeze) == "layer1.* ");
  CHECK(text_of(Loaded("freeze: [0, bias]\n").spec.freeze) == "0 bias ");
  CHECK(Loaded("no_decay: []\n").spec.no_decay.empty());
  CHECK(Loaded("no_decay: null\n").spec.no_decay.empty());
  CHECK(text_of(Loaded("no_decay: [bias]\n", {"no_decay=[norm]"}).spec.no_decay) == "norm ");
}

TEST_CASE("groups are a list or one; a setting that is not given is the optimizer's") {
  const Loaded t("parameter_groups:\n  - {match: [a, b], lr: 0}\n  - {match: c, weight_decay: 2}\n",
                 {"parameter_groups[1].match=d"});
  REQUIRE(t.spec.parameter_groups.size() == 2);
  CHECK(text_of(t.spec.parameter_groups[0].match) == "a b ");
  CHECK(t.spec.parameter_groups[0].lr == 0);
  CHECK_FALSE(t.spec.parameter_groups[0].weight_decay.has_value());
  CHECK(text_of(t.spec.parameter_groups[1].match) == "d ");
  CHECK(t.spec.parameter_groups[1].weight_decay == 2);
  CHECK(t.spec.parameter_groups[1].where.line == 7);
  CHECK(Loaded("parameter_groups: {match: a, lr: 1}\n").spec.parameter_groups.size() == 1);
  CHECK(Loaded("parameter_groups: none\n").spec.parameter_groups.empty());
}

TEST_CASE("lr_scale is a rule, with or without the batch") {
  CHECK(Loaded("").spec.lr_scale.rule == "none");
  CHECK(Loaded("lr_scale: none\n").spec.lr_scale.rule == "none");
  CHECK(Loaded("lr_scale: sqrt\n").spec.lr_scale.rule == "sqrt");
  const Loaded t("lr_scale: {linear: 256}\n");
  CHECK(t.spec.lr_scale.rule == "linear");
  CHECK(t.spec.lr_scale.batch == 256);
  CHECK_FALSE(Loaded("lr_scale: {sqrt: null}\n").spec.lr_scale.batch.has_value());
}

TEST_CASE("initial weights: paths are relative to the file in both forms") {
  const Loaded text("initial_weights: w.safetensors\n");
  CHECK(text.spec.initial_weights == text.folder.file("w.safetensors"));
  CHECK_FALSE(text.spec.partial_weights);
  const Loaded map("initial_weights: {file: w.safetensors, partial: true}\n");
  CHECK(map.spec.initial_weights == map.folder.file("w.safetensors"));
  CHECK(map.spec.partial_weights);
  const Loaded set("initial_weights: w.safetensors\n", {"initial_weights.partial=true"});
  CHECK(set.spec.initial_weights == set.folder.file("w.safetensors"));
  CHECK(set.spec.partial_weights);
  const Loaded base("extends: base/base.yaml\ninitial_weights: {partial: true}\n", {},
                    "model: []\ninitial_weights: {file: w.safetensors}\n");
  CHECK(base.spec.initial_weights == base.folder.file("base/w.safetensors"));
  CHECK(base.spec.partial_weights);
  CHECK(Loaded("initial_weights: null\n").spec.initial_weights.empty());
}

}  // namespace
}  // namespace dpt
