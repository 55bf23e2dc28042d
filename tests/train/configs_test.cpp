// Every file of configs/ is right, and does what its head says.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "paths.h"
#include "train/fashion_mnist.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;
const fs::path kConfigs = source_file("configs");

std::string config(const std::string& name) {
  std::ifstream in(kConfigs / (name + ".yaml"));
  REQUIRE_MESSAGE(in.good(), name);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// Tiny Shakespeare, or tokens in its place, and as little of either as says that the net trains.
std::vector<std::string> characters() {
  std::string dataset = "{synthetic_tokens: {length: 64, vocabulary: 65, targets: next}}";
  try {
    const auto files = find_files("tiny_shakespeare", "", kConfigs.string(), {"input.txt"});
    const fs::path folder = fs::absolute(fs::path(files[0]).parent_path());
    dataset = "{tiny_shakespeare: {path: \"" + folder.string() + "\"}}";
  } catch (const Error& e) {
    REQUIRE(e.fault() == Fault::data);
  }
  return {"data.dataset=" + dataset, "data.batch_size=2", "evaluate=false"};
}

}  // namespace

TEST_CASE("every spec of configs/ trains") {
  const std::string data = fashion_mnist();
  const size_t steps = kSanitized ? 1 : 3;
  size_t trained = 0;
  for (const auto& entry : fs::directory_iterator(kConfigs)) {
    if (entry.is_directory()) continue;  // large: below
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    std::vector<std::string> how = {fmt::format("steps={}", steps), "log.every=1"};
    const std::string text = config(name);
    if (text.find("extends: large/") != text.npos) continue;  // resnets_test.cpp
    if (text.find("dataset: fashion_mnist") != text.npos) {
      if (data.empty()) continue;
      how.push_back(data);
    }
    if (text.find("dataset: {tiny_shakespeare") != text.npos)
      for (const std::string& more : characters()) how.push_back(more);
    const Ran ran = run_spec(text, how);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(ran.step_losses().size() == steps);
    CHECK(std::ranges::all_of(ran.step_losses(), [](double x) { return std::isfinite(x); }));
    CHECK(!ran.weights.empty());
    ++trained;
  }
  CHECK(trained >= (data.empty() ? 5 : 12));
}

TEST_CASE("resnet18 trains, on small images, and its file has torchvision's names") {
  const Ran ran =
      run_spec(config("large/resnet18"),
               {"data.dataset={synthetic_images: {samples: 4, shape: [3, 32, 32], classes: 10}}",
                "data.batch_size=4", "steps=1", "log.every=1"});
  CHECK_MESSAGE(ran.code == 0, ran.err);
  REQUIRE(ran.step_losses().size() == 1);
  CHECK(std::isfinite(ran.step_losses()[0]));
  for (const char* name : {"conv1.weight", "bn1.num_batches_tracked", "layer1.0.conv1.weight",
                           "layer2.0.downsample.0.weight", "layer2.0.downsample.1.running_mean",
                           "layer4.1.bn2.running_var", "fc.weight", "fc.bias"})
    CHECK_MESSAGE(ran.weights.find("\"" + std::string(name) + "\"") != std::string::npos, name);
}

TEST_CASE("dp_toy prints what PyTorch's DataParallel tutorial does") {
  const Ran ran = run_spec(config("dp_toy"));
  CHECK(ran.code == 0);
  const std::string inside = "\tIn Model: input size [10, 5] output size [10, 2]\n";
  const std::string full =
      inside + inside + inside + "Outside: input size [30, 5] output_size [30, 2]\n";
  const std::string last =
      "\tIn Model: input size [4, 5] output size [4, 2]\n"
      "\tIn Model: input size [4, 5] output size [4, 2]\n"
      "\tIn Model: input size [2, 5] output size [2, 2]\n"
      "Outside: input size [10, 5] output_size [10, 2]\n";
  const std::string begin =
      "Let's use 3 CPUs!\n" + full + full + full + last + "Epoch [1/1], Loss: ";
  CHECK(ran.out.substr(0, begin.size()) == begin);
}

TEST_CASE("dp_toy's other counts of devices cut batches as torch's chunk does") {
  // torch.arange(30).chunk(4): 8, 8, 8, 6; arange(9).chunk(8): 2, 2, 2, 2, 1.
  const Ran four = run_spec(config("dp_toy"), {"devices=4", "steps=1"});
  CHECK(
      four.out.starts_with("Let's use 4 CPUs!\n"
                           "\tIn Model: input size [8, 5] output size [8, 2]\n"
                           "\tIn Model: input size [8, 5] output size [8, 2]\n"
                           "\tIn Model: input size [8, 5] output size [8, 2]\n"
                           "\tIn Model: input size [6, 5] output size [6, 2]\n"
                           "Outside: input size [30, 5] output_size [30, 2]\n"));
  const Ran eight = run_spec(config("dp_toy"), {"devices=8", "steps=1", "data.batch_size=9"});
  CHECK(
      eight.out.starts_with("Let's use 8 CPUs!\n"
                            "\tIn Model: input size [2, 5] output size [2, 2]\n"
                            "\tIn Model: input size [2, 5] output size [2, 2]\n"
                            "\tIn Model: input size [2, 5] output size [2, 2]\n"
                            "\tIn Model: input size [2, 5] output size [2, 2]\n"
                            "\tIn Model: input size [1, 5] output size [1, 2]\n"
                            "Outside: input size [9, 5] output_size [9, 2]\n"));
}

TEST_CASE("fmnist_single, _dp and _ddp are one training, bit for bit") {
  const std::string data = fashion_mnist();
  if (data.empty()) return;
  const size_t steps = kSanitized ? 3 : 50;
  const std::vector<std::string> common = {data, fmt::format("steps={}", steps), "cores=1",
                                           "log.every=1"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> out = common;
    out.push_back(more);
    return out;
  };
  // Two workers each: a chunk of 100 for either.
  const Ran single = run_spec(config("fmnist_single"), with("cores=2"));
  const Ran dp = run_spec(config("fmnist_dp"), common);
  REQUIRE(single.code == 0);
  REQUIRE(dp.code == 0);
  CHECK(single.step_losses().size() == steps);
  CHECK(single.step_losses() == dp.step_losses());
  CHECK(data_of(single.weights) == data_of(dp.weights));

  const std::string shards = "reproducible={shards: 4}";
  const Ran one = run_spec(config("fmnist_single"), with(shards));
  REQUIRE(one.code == 0);
  for (const std::string name : {"fmnist_dp", "fmnist_ddp"}) {
    CAPTURE(name);
    std::vector<std::string> how = with(shards);
    how.emplace_back("data.reshuffle=true");  // one epoch only, but its key stands in fmnist_ddp
    const Ran other = run_spec(config(name), how);
    REQUIRE_MESSAGE(other.code == 0, other.err);
    CHECK(one.step_losses() == other.step_losses());
    CHECK(data_of(one.weights) == data_of(other.weights));
  }
}

}  // namespace dpt
