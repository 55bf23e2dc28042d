// Files that extend files, and overrides.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "small_registries.h"
#include "spec/tree.h"

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
    spec = load_spec(path.string(), arguments, test::small_registries(), files, d, &tree);
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
  CHECK(extended("epochs", "steps: 5\n") == "3\n");  // of these both may stand
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
  CHECK(Loaded(folder.path / "a.yaml", {"initial_weights=null"}).spec.initial_weights.empty());
}

TEST_CASE("~ and $HOME at the front of a path are the home directory") {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  REQUIRE(home != nullptr);
  const std::string expected = fs::path(home + std::string("/w")).lexically_normal().string();
  const Folder folder;
  folder.write("a.yaml", kBase);
  for (const std::string path : {"~/w", "$HOME/w", "${HOME}/w"}) {
    CAPTURE(path);
    const Loaded l(folder.path / "a.yaml", {"initial_weights=" + path});
    CHECK(l.d.render() == "");
    CHECK(l.spec.initial_weights == expected);
  }
  CHECK(expand_home("~") == home);
  for (const std::string path : {"~other/w", "$HOMES/w", "a/~/w", "", "a"})
    CHECK(expand_home(path) == path);
  folder.write("b.yaml", "extends: ~/no-such-file-of-dptrain.yaml\n");
  CHECK(Loaded(folder.path / "b.yaml", {}).d.render().find(home) != std::string::npos);
}

TEST_CASE("a missing file is named where it is asked for") {
  const Folder folder;
  const Loaded gone(folder.path / "gone.yaml", {"epochs=3"});
  CHECK(gone.d.count() == 1);
  CHECK(gone.d.render().find("gone.yaml cannot be opened: No such file") != std::string::npos);
  const Loaded is_folder(folder.path, {});
  CHECK(is_folder.d.render().find("is a folder, not a file") != std::string::npos);
}

TEST_CASE("what a file extends is a regular file, and a spec") {
  const Folder folder;
  const auto refused = [&](const std::string& base) {
    folder.write("a.yaml", "extends: " + base + "\n" + kBase);
    return Loaded(folder.path / "a.yaml", {}).d.render();
  };
  REQUIRE(::mkfifo((folder.path / "fifo").c_str(), 0600) == 0);
  CHECK(refused("fifo").find("fifo is a pipe, not a regular file") != std::string::npos);
  CHECK(refused("/dev/zero").find("/dev/zero is a device, not a regular file") !=
        std::string::npos);
  CHECK(refused("parts").find("is a folder, not a regular file") != std::string::npos);
  // Nothing of what stands in a file that is no spec is shown.
  for (const char* foreign :
       {"root:$6$SECRET:19000:0:99999:7:::\n", "SECRET: 1\nTOKEN: SECRET\n", "a: SECRET: b\n",
        "[SECRET\n", "\tSECRET: 1\n", "SECRET: 1\nSECRET: 2\n", "- SECRET\n", "*SECRET\n"}) {
    CAPTURE(foreign);
    folder.write("foreign", foreign);
    const std::string message = refused("foreign");
    CHECK(message.find("foreign") != std::string::npos);
    CHECK(message.find("SECRET") == std::string::npos);
  }
  // A spec with a mistake is.
  folder.write("b.yaml", "epochs: x1\nseed: 3\nepoch: 3\n");
  CHECK(refused("b.yaml").find("3 | epoch: 3") != std::string::npos);
}

TEST_CASE("the spec itself may be a pipe, and never more than 1 MiB") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const std::string text = kBase;
  REQUIRE(::write(ends[1], text.data(), text.size()) == std::ssize(text));
  ::close(ends[1]);
  const Loaded piped(fmt::format("/dev/fd/{}", ends[0]), {"epochs=7"});
  ::close(ends[0]);
  CHECK(piped.d.render() == "");
  CHECK(piped.spec.epochs == 7);
  const Loaded zeros("/dev/zero", {});
  CHECK(zeros.d.render().find("/dev/zero has more than 1048576 bytes") != std::string::npos);
}

TEST_CASE("files that extend each other, and arguments, are limited together") {
  const Folder folder;
  std::string half;
  while (half.size() < 600000) half += "# " + std::string(1000, 'x') + "\n";
  folder.write("base.yaml", kBase + half);
  folder.write("a.yaml", "extends: base.yaml\n" + half);
  CHECK(Loaded(folder.path / "a.yaml", {}).d.render().find("have more than 1048576 bytes") !=
        std::string::npos);
  folder.write("b.yaml", kBase);
  CHECK(Loaded(folder.path / "b.yaml", std::vector<std::string>(1001, "epochs=3"))
            .d.render()
            .find("more than 1000 overrides") != std::string::npos);
  CHECK(Loaded(folder.path / "b.yaml",
               {"name=" + std::string(60000, 'x'), "blocks={a: " + std::string(250000, 'x') + "}"})
            .d.render()
            .find("262144 bytes of them") != std::string::npos);
}

TEST_CASE("a run is not called by a file's name that has control characters") {
  const Folder folder;
  folder.write("a\x1b[2J.yaml", kBase);
  CHECK(Loaded(folder.path / "a\x1b[2J.yaml", {}).d.render().find("set `name`") !=
        std::string::npos);
  CHECK(Loaded(folder.path / "a\x1b[2J.yaml", {"name=b"}).d.render() == "");
}

TEST_CASE("an override into a section that is written in short makes room for the key") {
  CHECK(overridden("save", {"save.every_steps=2"}, "save: true\n") == "every_steps: 2\n");
  CHECK(overridden("save", {"save=true", "save.keep=5"}) == "keep: 5\n");
  CHECK(overridden("save", {"save.keep=5"}, "save: false\n") == "keep: 5\n");
  CHECK(overridden("evaluate", {"evaluate.batch_size=5"}, "evaluate: true\n") == "batch_size: 5\n");
  CHECK(overridden("clip_grad_norm", {"clip_grad_norm.norm_type=1"}, "clip_grad_norm: 5\n") ==
        "max_norm: 5\nnorm_type: 1\n");
  CHECK(overridden("reproducible", {"reproducible.shards=4"}, "reproducible: 8\n") ==
        "shards: 4\n");
  CHECK(overridden("optimizer", {"optimizer={sgd: 0.1}", "optimizer.sgd.lr=0.2"}) ==
        "sgd:\n  lr: 0.2\n");
  CHECK(overridden("optimizer", {"optimizer={sgd: 0.1}", "optimizer.momentum=0.2"}) ==
        "sgd:\n  lr: 0.1\n  momentum: 0.2\n");
  CHECK(overridden("schedule", {"schedule={step: 3}", "schedule.gamma=0.2"}) ==
        "step:\n  step_size: 3\n  gamma: 0.2\n");
  CHECK(overridden("parallel", {"parallel=ddp", "parallel.ddp.backend=gloo"}) ==
        "ddp:\n  backend: gloo\n");
  CHECK(overridden("precision", {"precision=bf16", "precision.level=o2"}) ==
        "bf16:\n  level: o2\n");
  CHECK(overridden("loss", {"loss.cross_entropy.reduction=sum"}) ==
        "cross_entropy:\n  reduction: sum\n");
  CHECK(overridden("data", {"data.dataset.dir=/x"}).find("fashion_mnist:\n    dir: /x\n") !=
        std::string::npos);
}

TEST_CASE("an override into how a layer starts") {
  const auto init = [](const std::vector<std::string>& arguments) {
    const Folder folder;
    folder.write("a.yaml", kBase);
    const Loaded l(folder.path / "a.yaml", arguments);
    if (!l.d.ok()) return l.d.render();
    return to_yaml(*l.tree.find("model")->items[1].find("init"));
  };
  CHECK(init({"model.lin1.init=zeros", "model.lin1.init.bias=zeros"}) ==
        "weight: zeros\nbias: zeros\n");
  CHECK(init({"model.lin1.init={uniform: 0.5}", "model.lin1.init.b=2"}) ==
        "uniform:\n  a: 0.5\n  b: 2\n");
  CHECK(init({"model.lin1.init={weight: zeros}", "model.lin1.init.weight.uniform.b=2"}) ==
        "weight:\n  uniform:\n    b: 2\n");
}

TEST_CASE("what has no value takes nothing away") {
  CHECK(overridden("data", {"data.batch_size_per_replica=null"}).find("batch_size: 100") !=
        std::string::npos);
  CHECK(overridden("epochs", {"steps=null"}) == "3\n");
  CHECK(extended("clip_grad_norm", "clip_grad_norm: null\n",
                 std::string(kBase) + "clip_grad_norm: 5\n") == "");
}

TEST_CASE("an override without a value, as of a shell variable that is not set, is an error") {
  const Folder folder;
  folder.write("a.yaml", kBase);
  for (const std::string key : {"epochs", "data.batch_size", "devices", "out", "optimizer.lr"})
    for (const char* space : {"", " "}) {
      const Loaded l(folder.path / "a.yaml", {key + "=" + space});
      CHECK(l.d.render().find("error: '" + key +
                              "' has no value, as when a shell variable is not set; write a value "
                              "after the `=`, or `" +
                              key + "=null` to unset the key") != std::string::npos);
    }
  CHECK(Loaded(folder.path / "a.yaml", {"out=''"}).d.ok());
}

TEST_CASE("an override has no comment: a value that seems to have one needs quotes") {
  const Folder folder;
  folder.write("a.yaml", kBase);
  const Loaded l(folder.path / "a.yaml", {"out=ph #2"});
  CHECK(
      l.d.render().starts_with("out=ph #2:1:8: error: '#' starts a comment here; put the value "
                               "in quotes: 'out=\"ph #2\"'\n"));
  const Loaded quoted(folder.path / "a.yaml", {"out=it's #1"}),
      whole(folder.path / "a.yaml", {"name=#b"});
  CHECK(quoted.d.render().find("put the value in quotes\n") != std::string::npos);
  CHECK(whole.d.render().starts_with("name=#b:1:6: error: '#' starts a comment here"));
  for (const char* fine : {"out='ph #2'", "out=\"ph #2\"", "out=ph#2"})
    CHECK(Loaded(folder.path / "a.yaml", {fine}).d.ok());
}

TEST_CASE("overrides: values, sections that are missing, keys that exclude each other") {
  CHECK(overridden("data", {"data.batch_size=256", "data.limit=100"}) ==
        "dataset: fashion_mnist\nbatch_size: 256\nshuffle: false\nlimit: 100\n");
  CHECK(overridden("data", {"data.batch_size_per_replica=5"}) ==
        "dataset: fashion_mnist\nshuffle: false\nbatch_size_per_replica: 5\n");
  CHECK(overridden("epochs", {"steps=5"}) == "3\n");
  CHECK(overridden("steps", {"steps=5", "epochs=2"}) == "5\n");
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

TEST_CASE("words of choices have one spelling in the resolved text") {
  const Folder folder;
  folder.write("a.yaml", std::string(kBase) +
                             "schedule: {step: {step_size: 2}, interval: Epoch}\n"
                             "log: {loss: GLOBAL}\n");
  const Loaded loaded(folder.path / "a.yaml", {"loss={cross_entropy: {reduction: SUM}}"});
  CHECK(loaded.d.render() == "");
  CHECK(loaded.yaml("schedule").find("interval: epoch") != std::string::npos);
  CHECK(loaded.yaml("log") == "loss: global\n");
  CHECK(loaded.yaml("loss").find("reduction: sum") != std::string::npos);
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
