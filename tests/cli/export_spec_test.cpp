// dptrain export: what is opened before a word is written.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "cli/process.h"
#include "data/readers/npy.h"
#include "data/tables.h"
#include "paths.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// Data sets of the right form that hold nothing, where DPTRAIN_DATA may point.
void write_data(const Folder& folder) {
  const auto idx = [](const std::string& extents, size_t bytes) {
    return std::string{0, 0, 8, static_cast<char>(extents.size() / 4)} + extents +
           std::string(bytes, '\0');
  };
  const std::string samples{0, 0, 0, 40}, side{0, 0, 0, 28};
  for (const std::string split : {"train", "t10k"}) {
    folder.write("data/fashion_mnist/" + split + "-images-idx3-ubyte",
                 idx(samples + side + side, size_t{40} * 28 * 28));
    folder.write("data/fashion_mnist/" + split + "-labels-idx1-ubyte", idx(samples, 40));
  }
  std::string text(1115394, 'a');
  for (size_t i = 0; i < 65; ++i) text[i] = static_cast<char>('0' + i);
  folder.write("data/tiny_shakespeare/input.txt", text);
}

}  // namespace

TEST_CASE("every spec of configs/ can be exported") {
  const Folder folder;
  write_data(folder);
  int exported = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source_file("configs"))) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    const std::string program = folder.file(entry.path().stem().string() + ".py");
    const Finished f = dptrain({"export", entry.path().string(), "data.limit=16", "-o", program},
                               {{"DPTRAIN_DATA", folder.file("data")}});
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK(fs::exists(program));
    ++exported;
  }
  CHECK(exported >= 18);
  for (const char* made : {"vgg-train-x.npy", "vgg-train-y.npy", "vgg-test-x.npy", "vgg-test-y.npy",
                           "resnet50_dp-train-x.npy"})
    CHECK(fs::exists(folder.file(made)));
  CHECK(!fs::exists(folder.file("resnet50_dp-test-x.npy")));  // the spec does not evaluate
}

TEST_CASE("what export advises for a spec that cannot be exported works") {
  const Folder folder;
  folder.write("x.csv", "a,b\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n9,0\n10,1\n");
  const std::string rest =
      ", batch_size: 2, validation: 0.2}\nmodel: [{linear: 2}]\nloss: cross_entropy\n"
      "optimizer: sgd\nepochs: 2\nearly_stop: 2\nsave: {best: accuracy}\nminutes: 5\n";
  for (const std::string& text :
       {"data: {dataset: {csv: {path: x.csv, classes: 2}}" + rest,
        "data: {dataset: {csv: {path: x.csv, classes: 2}}" + rest + "evaluate: true\n",
        "data: {dataset: {csv: {path: x.csv, test_path: x.csv, classes: 2}}" + rest +
            "evaluate: {metrics: [accuracy, f1]}\n"}) {
    folder.write("t.yaml", text);
    std::vector<std::string> words = {"export", "t.yaml", "--to", "torch", "-o", "t.py"};
    const Finished refused = dptrain(words, {}, folder.path());
    const std::string before = "export with ";
    const size_t advice = refused.err.find(before);
    REQUIRE_MESSAGE(advice != std::string::npos, refused.err);
    std::istringstream keys(refused.err.substr(advice + before.size()));
    for (std::string word; keys >> word;) words.push_back(word);
    const Finished done = dptrain(words, {}, folder.path());
    CHECK_MESSAGE(done.code == 0, refused.err, done.err);
  }
}

TEST_CASE("a layer with the name of a member of PyTorch's modules is not exported") {
  const Folder folder;
  const std::string spec = folder.write(
      "t.yaml",
      "data: {dataset: {random: {samples: 8, in_features: 4, out_features: 2}}, batch_size: 4}\n"
      "model: [{linear: 5, name: double}, {linear: 2}]\nloss: mse_loss\noptimizer: sgd\n");
  const Finished refused = dptrain({"export", spec, "--to", "torch"}, {}, folder.path());
  CHECK(refused.code == 2);
  CHECK_MESSAGE(refused.err.find("PyTorch cannot have a layer named 'double', because its") !=
                    std::string::npos,
                refused.err);
}

TEST_CASE("export writes the settings of each parameter after lr_scale") {
  const Folder folder;
  const std::string spec = folder.write("t.yaml", R"(
data: {dataset: {random: {samples: 8, in_features: 4, out_features: 2}}, batch_size: 4}
model: [{linear: 5, name: lin1}, {layer_norm: , name: n}, relu, {linear: 2, name: fc}]
loss: mse_loss
optimizer: {adam_w: {lr: 0.1, weight_decay: 0.01}}
no_decay: [bias, norm]
parameter_groups: {match: fc, lr: 1}
freeze: n.weight
lr_scale: {linear: 2}
)");
  const Finished f = dptrain({"export", spec});
  REQUIRE_MESSAGE(f.code == 0, f.err);
  CHECK_MESSAGE(has(f.out, R"(    groups = [
        (["lin1.weight"], {"lr": 0.2, "weight_decay": 0.01}),
        (["lin1.bias", "n.bias"], {"lr": 0.2, "weight_decay": 0.0}),
        (["fc.weight"], {"lr": 2.0, "weight_decay": 0.01}),
        (["fc.bias"], {"lr": 2.0, "weight_decay": 0.0}),
    ]
)"),
                f.out);
  CHECK(has(f.out, "optimizer = optim.AdamW(parameter_groups(model), lr=0.2)\n"));
}

TEST_CASE("export says that dropout masks differ, unless they do not") {
  const Folder folder;
  folder.write("t.yaml", R"(
data: {dataset: {random: {samples: 8, in_features: 4, out_features: 2}}, batch_size: 4}
model: [{linear: 6}, {dropout: 0.5}, {linear: 2}]
loss: mse_loss
optimizer: sgd
)");
  const auto said = [&](const std::string& more) {
    const Finished f = dptrain({"export", folder.file("t.yaml"), more});
    CHECK_MESSAGE(f.code == 0, f.err);
    return f.err;
  };
  CHECK(
      said("seed=1") ==
      "note: PyTorch and dptrain draw different dropout masks, so losses differ; export and train "
      "with random=torch for the same masks\n");
  CHECK(said("parallel=ddp").find("with random=torch parallel=single for the same masks") !=
        std::string::npos);
  CHECK(said("random=torch").empty());
  CHECK(said("model[1].p=0").empty());
}

TEST_CASE("export says that DistributedSampler repeats samples, unless it does not") {
  const Folder folder;
  folder.write("t.yaml", R"(
data: {dataset: {random: {samples: 9, in_features: 4, out_features: 2}}, batch_size: 4}
model: [{linear: 2}]
loss: mse_loss
optimizer: sgd
parallel: {ddp: 2}
)");
  const auto said = [&](const std::string& more) {
    const Finished f = dptrain({"export", folder.file("t.yaml"), more});
    CHECK_MESSAGE(f.code == 0, f.err);
    return f.err;
  };
  CHECK(said("seed=1") ==
        "note: 9 samples cannot be divided evenly among 2 ranks: PyTorch's DistributedSampler "
        "repeats some, dptrain does not, so losses differ; export and train with data.pad=true for "
        "the same samples\n");
  for (const char* more :
       {"data.pad=true", "data.limit=8", "parallel=dp", "reproducible={shards: 4}"})
    CHECK(said(more).empty());
}

TEST_CASE("the arrays beside a program are the data that dptrain trains on") {
  const Folder folder;
  folder.write("t.yaml", R"(
data:
  dataset: {synthetic_images: {samples: 12, test_samples: 6, shape: [1, 4, 5], classes: 3}}
  batch_size: 4
  limit: 8
model: [flatten, {linear: 3}]
loss: cross_entropy
optimizer: sgd
evaluate: true
)");
  REQUIRE(dptrain({"export", folder.file("t.yaml"), "-o", folder.file("net.py")}).code == 0);
  const Table train = read_npy(folder.file("net-train-x.npy"));
  CHECK(train.desc.dtype == DType::u8);
  CHECK(train.desc.shape == Shape{8, 1, 4, 5});
  CHECK(read_npy(folder.file("net-train-y.npy")).desc.shape == Shape{8});
  CHECK(read_npy(folder.file("net-test-x.npy")).desc.shape == Shape{6, 1, 4, 5});
  CHECK(std::ranges::any_of(values_of<uint8_t>(train), [](uint8_t v) { return v > 0; }));

  // They train a net to the same losses as the set that they were made from.
  folder.write("files.yaml", R"(
data:
  dataset: {npy: {inputs: net-train-x.npy, targets: net-train-y.npy, classes: 3,
                  test_inputs: net-test-x.npy, test_targets: net-test-y.npy}}
  batch_size: 4
model: [flatten, {linear: 3}]
loss: cross_entropy
optimizer: sgd
evaluate: true
)");
  const Finished made = dptrain({folder.file("t.yaml"), "out=" + folder.file("a")});
  const Finished read = dptrain({folder.file("files.yaml"), "out=" + folder.file("b")});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  REQUIRE_MESSAGE(read.code == 0, read.err);
  const auto epoch = [](const Finished& f) { return f.out.substr(f.out.find("Epoch [")); };
  CHECK(epoch(made) == epoch(read));
}

TEST_CASE("a data set that is too large for arrays is refused with a way out") {
  const Folder folder;
  folder.write("t.yaml", R"(
data:
  dataset: {synthetic_images: {samples: 100000, shape: [3, 64, 64]}}
  batch_size: 4
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: sgd
)");
  const Finished large = dptrain({"export", folder.file("t.yaml"), "-o", folder.file("t.py")});
  CHECK(large.code == 2);
  CHECK(large.err.find("data.limit=1000") != std::string::npos);
  CHECK(!fs::exists(folder.file("t-train-x.npy")));
  CHECK(!fs::exists(folder.file("t.py")));
  const Finished limited =
      dptrain({"export", folder.file("t.yaml"), "data.limit=10", "-o", folder.file("t.py")});
  CHECK_MESSAGE(limited.code == 0, limited.err);
}

TEST_CASE("a smaller last batch does not stand in the way of an export") {
  const Folder folder;
  folder.write("t.yaml", R"(
data: {dataset: {random: {samples: 20, in_features: 5, out_features: 3}}, batch_size: 8}
model: [{linear: 3}]
loss: mse_loss
optimizer: sgd
)");
  const Finished shown = dptrain({"export", folder.file("t.yaml"), "--to", "torch"});
  CHECK_MESSAGE(shown.code == 0, shown.err);
}

TEST_CASE("an exported program ends with epochs or steps, whichever is reached first") {
  const Folder folder;
  folder.write("t.yaml", R"(
data: {dataset: {random: {samples: 20, in_features: 5, out_features: 3}}, batch_size: 8}
model: [{linear: 3}]
loss: mse_loss
optimizer: sgd
schedule: {one_cycle: 0.1}
)");
  const auto has = [&](const std::string& epochs, const std::string& text) {
    const Finished shown = dptrain({"export", folder.file("t.yaml"), "steps=4", epochs});
    CHECK_MESSAGE(shown.code == 0, shown.err);
    return shown.out.find(text) != std::string::npos;
  };
  CHECK(has("epochs=5", "\nEPOCHS = 2\nSTEPS = 4\n"));
  CHECK(has("epochs=5", "total_steps=4"));
  CHECK(has("epochs=1", "\nEPOCHS = 1\nSTEPS = 3\n"));
  CHECK(has("epochs=1", "total_steps=3"));
}

}  // namespace dpt
