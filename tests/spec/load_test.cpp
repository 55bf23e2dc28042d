// Files that extend files, and overrides.
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "words.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("dptrain-load-test-{}", ::getpid());
  Folder() { fs::create_directories(path / "parts"); }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
  }
};

struct Loaded {
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Node tree;
  Spec spec;
  Loaded(const fs::path& path, const std::vector<std::string>& arguments) {
    spec = load_spec(path.string(), arguments, test::words(), files, d, &tree);
  }
  std::string yaml(std::string_view key) const {
    const Node* n = tree.find(key);
    return n ? to_yaml(*n) : "none";
  }
};

constexpr const char* kBase =
    "data: {dataset: fashion_mnist, batch_size: 100, shuffle: false}\n"
    "model:\n"
    "  - flatten\n"
    "  - linear: 20\n"
    "    name: lin1\n"
    "  - dropout\n"
    "  - residual: {body: [relu, {dropout: 0.1}]}\n"
    "    name: res\n"
    "  - linear: 10\n"
    "loss: cross_entropy\n"
    "optimizer: {adam: 0.01}\n"
    "epochs: 3\n";

// The section of a tree after the overrides.
std::string overridden(std::string_view section, const std::vector<std::string>& arguments,
                       const std::string& more = "") {
  const Folder folder;
  folder.write("a.yaml", kBase + more);
  const Loaded l(folder.path / "a.yaml", arguments);
  return l.d.ok() ? l.yaml(section) : l.d.render();
}

// The section of a file that extends the base.
std::string extended(std::string_view section, const std::string& text,
                     const std::string& base = kBase) {
  const Folder folder;
  folder.write("parts/base.yaml", base);
  folder.write("a.yaml", "extends: parts/base.yaml\n" + text);
  const Loaded l(folder.path / "a.yaml", {});
  return l.d.ok() ? l.yaml(section) : l.d.render();
}

}  // namespace

TEST_CASE("maps merge deep, lists and single values replace") {
  CHECK(extended("data", "data: {batch_size: 5, limit: 7}\n") ==
        "dataset: fashion_mnist\nbatch_size: 5\nshuffle: false\nlimit: 7\n");
  CHECK(extended("model", "model: [linear: 3]\n") == "- linear: 3\n");
  CHECK(extended("epochs", "epochs: 9\n") == "9\n");
  CHECK(extended("extends", "") == "none");
}

TEST_CASE("of two keys that exclude each other the later file's stays") {
  CHECK(extended("data", "data: {batch_size_per_replica: 5}\n") ==
        "dataset: fashion_mnist\nshuffle: false\nbatch_size_per_replica: 5\n");
  CHECK(extended("epochs", "steps: 5\n") == "none");
}

TEST_CASE("another choice replaces the base's with its keys, the same one merges") {
  CHECK(extended("optimizer", "optimizer: {sgd: {momentum: 0.9}}\n") == "sgd:\n  momentum: 0.9\n");
  CHECK(extended("optimizer", "optimizer: {adam: {eps: 1e-7}}\n") ==
        "adam:\n  lr: 0.01\n  eps: 1e-7\n");
  CHECK(extended("optimizer", "optimizer: {adam: 0.5}\n") == "adam: 0.5\n");
  CHECK(extended("loss", "loss: {cross_entropy: {label_smoothing: 0.1}}\n") ==
        "cross_entropy:\n  label_smoothing: 0.1\n");
  const std::string base = std::string(kBase) + "schedule: {step: 3, warmup: 2}\nreproducible: 8\n";
  CHECK(extended("schedule", "schedule: {step: {gamma: 0.5}}\n", base) ==
        "step:\n  step_size: 3\n  gamma: 0.5\nwarmup: 2\n");
  CHECK(extended("schedule", "schedule: {multi_step: [3]}\n", base) ==
        "warmup: 2\nmulti_step: [3]\n");
  CHECK(extended("schedule", "schedule: {warmup: 3}\n", base) == "step: 3\nwarmup: 3\n");
  CHECK(extended("schedule", "schedule: null\n", base) == "");
}

TEST_CASE("a chain of files, each path relative to the file that names it") {
  const Folder folder;
  folder.write("base.yaml", kBase);
  folder.write("parts/middle.yaml", "extends: ../base.yaml\nseed: 5\nepochs: 4\n");
  folder.write("a.yaml", "extends: parts/middle.yaml\nepochs: 5\n");
  const Loaded l(folder.path / "a.yaml", {});
  CHECK(l.d.render() == "");
  CHECK(l.spec.seed == 5);
  CHECK(l.spec.epochs == 5);
  CHECK(l.spec.name == "a");
  CHECK(l.spec.path == (folder.path / "a.yaml").string());
  CHECK(l.files.size() == 3);
}

TEST_CASE("a path is relative to the file it stands in, in an argument to the working directory") {
  const Folder folder;
  folder.write("parts/base.yaml", std::string(kBase) + "initial_weights: w/../start.safetensors\n");
  folder.write("a.yaml", "extends: parts/base.yaml\nepochs: 5\n");
  const std::string of_base = (folder.path / "parts/start.safetensors").string();
  const Loaded file(folder.path / "a.yaml", {});
  CHECK(file.d.render() == "");
  CHECK(file.spec.initial_weights == of_base);
  CHECK(file.yaml("initial_weights") == "\"" + of_base + "\"\n");
  const Loaded argument(folder.path / "a.yaml", {"initial_weights=start.safetensors"});
  CHECK(argument.spec.initial_weights == (fs::current_path() / "start.safetensors").string());
  const Loaded absolute(folder.path / "a.yaml", {"initial_weights=/x/start.safetensors"});
  CHECK(absolute.spec.initial_weights == "/x/start.safetensors");
  CHECK(Loaded(folder.path / "a.yaml", {"initial_weights="}).spec.initial_weights.empty());
}

TEST_CASE("a missing file is named where it is asked for") {
  const Folder folder;
  const Loaded gone(folder.path / "gone.yaml", {"epochs=3"});
  CHECK(gone.d.count() == 1);
  CHECK(gone.d.render().find("gone.yaml' cannot be read: No such file") != std::string::npos);
  const Loaded is_folder(folder.path, {});
  CHECK(is_folder.d.render().find("it is a folder") != std::string::npos);
}

TEST_CASE("overrides: values, sections that are missing, keys that exclude each other") {
  CHECK(overridden("data", {"data.batch_size=256", "data.limit=100"}) ==
        "dataset: fashion_mnist\nbatch_size: 256\nshuffle: false\nlimit: 100\n");
  CHECK(overridden("data", {"data.batch_size_per_replica=5"}) ==
        "dataset: fashion_mnist\nshuffle: false\nbatch_size_per_replica: 5\n");
  CHECK(overridden("epochs", {"steps=5"}) == "none");
  CHECK(overridden("steps", {"steps=5", "epochs=2"}) == "none");
  CHECK(overridden("log", {"log.loss=rank0", "log.every=5"}) == "loss: rank0\nevery: 5\n");
  CHECK(overridden("devices", {"devices=[cpu:0, cpu:1]"}) == "[cpu:0, cpu:1]\n");
  CHECK(overridden("name", {"name=x=y"}) == "x=y\n");
}

TEST_CASE("overrides of choices, by key, by name and as a whole") {
  CHECK(overridden("optimizer", {"optimizer.lr=0.1"}) == "adam:\n  lr: 0.1\n");
  CHECK(overridden("optimizer", {"optimizer.eps=1e-7"}) == "adam:\n  lr: 0.01\n  eps: 1e-7\n");
  CHECK(overridden("optimizer", {"optimizer=adam", "optimizer.lr=0.1"}) == "adam:\n  lr: 0.1\n");
  CHECK(overridden("optimizer", {"optimizer={sgd: 0.1}"}) == "sgd: 0.1\n");
  CHECK(overridden("optimizer", {"optimizer.adam=0.5"}) == "adam: 0.5\n");
  CHECK(overridden("optimizer", {"optimizer.adam.lr=0.5"}) == "adam:\n  lr: 0.5\n");
  CHECK(overridden("optimizer", {"optimizer.sgd=0.5"}) == "sgd: 0.5\n");
  CHECK(overridden("optimizer", {"optimizer.sgd.momentum=0.5"}) == "sgd:\n  momentum: 0.5\n");
  CHECK(overridden("optimizer", {"optimizer.betas=[0.8, 0.9]", "optimizer.betas[1]=0.99"}) ==
        "adam:\n  lr: 0.01\n  betas: [0.8, 0.99]\n");
  CHECK(overridden("loss", {"loss.reduction=sum"}) == "cross_entropy:\n  reduction: sum\n");
  CHECK(overridden("schedule", {"schedule.step.step_size=3", "schedule.warmup=2"}) ==
        "step:\n  step_size: 3\nwarmup: 2\n");
  CHECK(overridden("parallel", {"parallel=ddp", "parallel.backend=gloo"}) ==
        "ddp:\n  backend: gloo\n");
  CHECK(overridden("evaluate", {"evaluate.every=2"}, "evaluate: true\n") == "every: 2\n");
  CHECK(overridden("clip_grad_norm", {"clip_grad_norm.norm_type=1"}, "clip_grad_norm: 5\n") ==
        "max_norm: 5\nnorm_type: 1\n");
}

TEST_CASE("overrides of layers, by name and number") {
  const auto layer = [](size_t index, const std::string& argument) {
    const Folder folder;
    folder.write("a.yaml", kBase);
    const Loaded l(folder.path / "a.yaml", {argument});
    return l.d.ok() ? to_yaml(l.tree.find("model")->items[index]) : l.d.render();
  };
  CHECK(layer(1, "model.lin1.out_features=7") == "linear:\n  out_features: 7\nname: lin1\n");
  CHECK(layer(1, "model.lin1.bias=false") ==
        "linear:\n  out_features: 20\n  bias: false\nname: lin1\n");
  CHECK(layer(1, "model.lin1.freeze=true") == "linear: 20\nname: lin1\nfreeze: true\n");
  CHECK(layer(2, "model[2].p=0.1") == "dropout:\n  p: 0.1\n");
  CHECK(layer(2, "model[2].name=drop") == "dropout: null\nname: drop\n");
  CHECK(layer(2, "model[2]=relu") == "relu\n");
  CHECK(layer(3, "model.res.body[1].p=0.3") ==
        "residual:\n  body:\n    - relu\n    - dropout:\n        p: 0.3\nname: res\n");
  CHECK(layer(3, "model.res.shortcut=[identity]") ==
        "residual:\n  body:\n    - relu\n    - dropout: 0.1\n  shortcut: [identity]\nname: res\n");
}

TEST_CASE("overrides of blocks and of their uses") {
  const std::string blocks =
      "data: {dataset: fashion_mnist, batch_size: 1, transforms: [to_tensor, {divide: 255}]}\n"
      "blocks: {mlp: {parameters: {width: 64, p: 0.1}, layers: [{linear: \"${width}\"}]}}\n"
      "model: [{mlp: 5, name: b}]\nloss: cross_entropy\noptimizer: adam\n";
  const Folder folder;
  folder.write("a.yaml", blocks);
  const Loaded l(folder.path / "a.yaml",
                 {"blocks.mlp.parameters.p=0.2", "model.b.p=0.4", "blocks.mlp.layers[0].bias=false",
                  "data.transforms[1].by=3"});
  CHECK(l.d.render() == "");
  CHECK(l.yaml("model") == "- mlp:\n    width: 5\n    p: 0.4\n  name: b\n");
  CHECK(l.yaml("blocks") ==
        "mlp:\n  parameters:\n    width: 64\n    p: 0.2\n  layers:\n    - linear:\n"
        "        out_features: \"${width}\"\n        bias: false\n");
  CHECK(l.yaml("data").find("by: 3") != std::string::npos);
}

TEST_CASE("complaints about an argument stand under the argument") {
  CHECK(overridden("data", {"data.batch_size=abc"}) ==
        "data.batch_size=abc:1:17: error: 'batch_size' must be an integer, not 'abc'\n"
        "    1 | data.batch_size=abc\n"
        "      |                 ^^^\n");
  CHECK(overridden("data", {"data.batch_sze=1"}) ==
        "data.batch_sze=1:1:6: error: unknown key 'batch_sze' in 'data'; did you mean "
        "'batch_size'?\n"
        "    1 | data.batch_sze=1\n"
        "      |      ^^^^^^^^^\n");
}

TEST_CASE("the resolved text gives the same spec again") {
  const Folder folder;
  folder.write("base.yaml", kBase);
  folder.write("a.yaml", "extends: base.yaml\noptimizer: {adam: {eps: 1e-7}}\nseed: 4\n");
  const Loaded first(folder.path / "a.yaml", {"data.batch_size=7", "model.lin1.bias=false"});
  REQUIRE(first.d.render() == "");
  folder.write("b.yaml", to_yaml(first.tree));
  const Loaded second(folder.path / "b.yaml", {});
  CHECK(second.d.render() == "");
  CHECK(to_yaml(second.tree) == to_yaml(first.tree));
  CHECK(second.spec.data.batch_size == 7);
  CHECK(second.spec.seed == 4);
  const auto& adam = std::any_cast<const test::Adam&>(second.spec.optimizer.settings);
  CHECK(adam.lr == 0.01);
  CHECK(adam.eps == 1e-7);
}

}  // namespace dpt
