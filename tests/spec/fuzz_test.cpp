// Random changes of sound specs: nothing may crash, hang or be both refused and silent.
#include <iterator>

#include <doctest/doctest.h>

#include "sanitizers.h"
#include "small_registries.h"

namespace dpt {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  size_t below(size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state_ >> 33) % n;
  }

 private:
  uint64_t state_;
};

// Blocks that pass on several times what they are given.
const std::string kNested =
    "data: {dataset: synthetic_images, batch_size: 5}\n"
    "blocks:\n  wide:\n    parameters: {p: 1, q: null}\n    layers:\n"
    "      - wider: {p: \"${p}0\", q: [\"${p}\", \"${q}\", \"${q}\"]}\n"
    "      - wider: {p: \"${p * 2}\"}\n        repeat: 3\n"
    "  wider:\n    parameters: {p: 2, q: \"${p}${p}\"}\n    layers:\n"
    "      - linear: ${p}\n      - widest: {p: \"${p}${q}\"}\n"
    "  widest:\n    parameters: {p: 3}\n    layers: [{linear: \"${p}\"}, {dropout: 0.5}]\n"
    "model: [{wide: {q: 3}}, {wider: {p: 4}, repeat: 2, name: x}]\n"
    "loss: mse_loss\noptimizer: sgd\n";

const std::string kSpecs[] = {
    kNested,
    "version: 1\nname: fmnist\nseed: 0\ndata:\n  dataset: fashion_mnist\n"
    "  transforms: [to_tensor, {divide: 255}]\n  batch_size: 100\n"
    "model:\n  - flatten\n  - linear: 200\n    name: lin1\n  - sigmoid\n  - linear: 10\n"
    "loss: cross_entropy\noptimizer: {adam: {lr: 0.01, betas: [0.9, 0.999]}}\nepochs: 10\n"
    "devices: [cpu:0, cpu:1]\nparallel: {ddp: {backend: gloo}}\n",
    "data: {dataset: {synthetic_images: {samples: 10}}, batch_size_per_replica: 5, limit: 3}\n"
    "blocks:\n  mlp:\n    parameters: {width: 64, p: 0.1, m: null}\n    layers:\n"
    "      - linear: ${width * 2 / 4 + 1}\n        name: lin${m}\n      - dropout: ${p}\n"
    "      - residual: {body: [relu, {linear: \"${width}\"}], shortcut: [identity]}\n"
    "model:\n  - mlp: {m: 1}\n    repeat: 3\n    name: layer1\n  - add:\n    from: [layer1, "
    "\"0\"]\n"
    "loss: {mse_loss: sum}\noptimizer: sgd\nschedule: {step: {step_size: 3}, warmup: 2}\n"
    "clip_grad_norm: {max_norm: 1, norm_type: .inf}\nevaluate: {every: 2}\nreproducible: 8\n"
    "steps: 100\nlog: {every: 10, loss: rank0, shapes: true}\nname: 'it''s \"quoted\" größe'\n"};

const std::string kArguments[] = {"data.batch_size=256",
                                  "data.batch_size=",
                                  "optimizer=",
                                  "blocks.wider.parameters.q=[\"${p}\", \"${p}\"]",
                                  "save.every_steps=9223372036854775807",
                                  "epochs=null",
                                  "model.x.init.weight=zeros",
                                  "optimizer.lr=0.1",
                                  "model[1].p=0.1",
                                  "model.layer1.width=3",
                                  "schedule={step: 3}",
                                  "evaluate.every=2",
                                  "blocks.mlp.layers[0].bias=false",
                                  "devices=[0, 1]"};

// Up to three changes: bytes put in, taken out, doubled or swapped.
std::string changed(std::string text, Random& random) {
  static const std::string_view parts[] = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ":",
                                           ": ",
                                           "- ",
                                           "\n",
                                           " ",
                                           "  ",
                                           "\t",
                                           "#",
                                           "\"",
                                           "'",
                                           "${",
                                           "}",
                                           "&a",
                                           "*a",
                                           "!t",
                                           "|",
                                           ">",
                                           "~",
                                           "null",
                                           "0",
                                           "-1",
                                           "1e9",
                                           "99999999999999999999",
                                           ".inf",
                                           "\xc3",
                                           "é",
                                           "?",
                                           ",",
                                           "%",
                                           "=",
                                           ".",
                                           "model",
                                           "repeat: 1000",
                                           "repeat: 9223372036854775807",
                                           "-9223372036854775808",
                                           "9223372036854775807",
                                           "${p}${p}${p}${p}",
                                           "[\"${p}\", \"${p}\", \"${p}\"]",
                                           "${p * p}",
                                           "\"\"",
                                           "{}",
                                           "[]",
                                           "none",
                                           "- wide: {p: [\"${p}\", \"${p}\"]}\n",
                                           "parameters: {p: [1, 2, 3]}\n",
                                           "<<",
                                           "---\n"};
  for (size_t i = random.below(4); i > 0; --i) {
    const size_t at = random.below(text.size() + 1);
    const size_t length = std::min(random.below(12), text.size() - at);
    switch (random.below(4)) {
      case 0:
        text.insert(at, parts[random.below(std::size(parts))]);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.replace(at, length, parts[random.below(std::size(parts))]);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("changed specs and arguments never crash, and what is accepted reads back the same") {
  Random random(20240501);
  size_t accepted = 0;
  const size_t rounds = kSanitized ? 600 : 2000;
  for (size_t round = 0; round < rounds; ++round) {
    const SourceFile file{"fuzz.yaml", changed(kSpecs[random.below(std::size(kSpecs))], random)};
    std::string text = kArguments[random.below(std::size(kArguments))];
    if (random.below(2) == 0) text = changed(text, random);
    const SourceFile argument{text, text};
    CAPTURE(file.text);
    CAPTURE(argument.text);
    Diagnostics d;
    Node root = read_yaml(file, d);
    if (random.below(2) == 0) apply_override(root, argument, test::small_registries(), d);
    read_spec(root, test::small_registries(), d);
    REQUIRE(d.ok() == d.render().empty());
    if (!d.ok()) continue;
    ++accepted;
    const SourceFile again{"again.yaml", to_yaml(root)};
    Diagnostics fresh;
    const Node second = read_yaml(again, fresh);
    read_spec(second, test::small_registries(), fresh);
    CHECK(fresh.render() == "");
    CHECK(to_yaml(second) == again.text);
  }
  CHECK(accepted > rounds / 40);     // else the changes are so wild that they test only the parser
  CHECK(accepted < rounds * 3 / 4);  // else they change nothing
}

}  // namespace dpt
