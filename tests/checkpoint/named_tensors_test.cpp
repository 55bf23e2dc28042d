// Files of weights that do not fit: what they hold is named, and nothing of it is read.
#include "checkpoint/named_tensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "checkpoint/model_file.h"
#include "data/folder.h"
#include "data/peak_growth.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

const std::string kNet = R"(
data: {dataset: {random: {samples: 8, in_features: 2, out_features: 1}}, batch_size: 4}
model: [{linear: 3}, {linear: 1}]
loss: mse_loss
optimizer: {sgd: 0.1}
cores: 1
)";

// The file of these tensors, all f32, whose bytes are zeros that take no disk.
void write_sparse(const std::string& path,
                  const std::vector<std::pair<std::string, Shape>>& tensors) {
  std::vector<NamedTensor> all;
  uint64_t bytes = 0;
  for (const auto& [name, shape] : tensors) {
    all.push_back({name, {DType::f32, shape}, nullptr});
    bytes += all.back().desc.bytes();
  }
  const std::string head = safetensors_head(all);
  std::ofstream(path, std::ios::binary) << head;
  std::filesystem::resize_file(path, head.size() + bytes);
}

TEST_CASE("weights that do not fit: missing and extra tensors are named, none is read") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  const auto run = [&] { return run_spec(kNet, {"initial_weights=" + path}); };
  std::vector<std::pair<std::string, Shape>> tensors = {
      {"0.weight", {3, 2}}, {"module.0.bias", {3}}, {"1.weight", {1, 3}}, {"1.bias", {1}}};
  write_sparse(path, tensors);
  CHECK(run().code == 0);  // "module." as torch's DataParallel writes it
  run_spec(kNet);          // what a run takes anyway

  tensors.emplace_back("head.weight", Shape{int64_t{1} << 31});  // 8 GiB
  write_sparse(path, tensors);
  Ran ran;
  CHECK(peak_growth([&] { ran = run(); }) < kHostileBytes);
  CHECK(ran.code == 4);
  CHECK_MESSAGE(has(ran.err,
                    "w.safetensors does not fit the model: it has 'head.weight', which the "
                    "model does not have; to take only what fits, write `initial_weights: {file: "
                    "..., partial: true}`\n"),
                ran.err);

  for (int i = 0; i < 6; ++i) tensors.emplace_back(fmt::format("more.{}", i), Shape{1});
  tensors[2].second = Shape{1, 4};
  tensors.erase(tensors.begin());
  write_sparse(path, tensors);
  ran = run();
  CHECK(ran.code == 4);
  CHECK_MESSAGE(has(ran.err,
                    "it has no '0.weight'; it has 'head.weight', 'more.0', 'more.1', 'more.2', "
                    "'more.3' and 2 more, which the model does not have; its '1.weight' is f32[1, "
                    "4], but the model's is f32[1, 3]"),
                ran.err);
}

TEST_CASE("weights that do not fit are found before a run, by the header alone") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  folder.write("t.yaml", kNet + "initial_weights: w.safetensors\n");
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  const auto session = make_session(
      load_spec(folder.file("t.yaml"), {}, registries(), files, d, nullptr), {.runs = false}, d);
  REQUIRE_MESSAGE(session, d.render());
  const auto complaint = [&] {
    try {
      check_initial_weights(session->settings, session->model);
    } catch (const Error& e) {
      return e.report();
    }
    return std::string();
  };
  const std::string place =
      fmt::format("\n  while reading `initial_weights` ({}:7:18)", folder.file("t.yaml"));
  CHECK_MESSAGE(has(complaint(), "No such file"), complaint());
  CHECK_MESSAGE(has(complaint(), place), complaint());
  write_sparse(path, {{"0.weight", {3, 2}}, {"0.bias", {3}}, {"1.weight", {1, 4}}, {"x", {1}}});
  CHECK_MESSAGE(has(complaint(),
                    "it has no '1.bias'; it has 'x', which the model does not have; its '1.weight' "
                    "is f32[1, 4], but the model's is f32[1, 3]; to take only what fits, write "
                    "`initial_weights: {file: ..., partial: true}`" +
                        place),
                complaint());
  write_sparse(path,
               {{"0.weight", {3, 2}}, {"0.bias", {3}}, {"1.weight", {1, 3}}, {"1.bias", {1}}});
  CHECK(complaint().empty());
}

TEST_CASE("partial: takes what fits and says what it did not take, and why") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  const auto run = [&](const std::string& weights) {
    return run_spec(kNet, {"initial_weights=" + weights, "optimizer.lr=0"});
  };
  const std::string partial = "{file: " + path + ", partial: true}";
  write_sparse(path,
               {{"module.0.weight", {3, 2}}, {"0.bias", {3}}, {"1.weight", {5, 3}}, {"x", {1}}});
  const Ran ran = run(partial);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.err, "initial weights: 2 of 4 tensors from " + path +
                                 "; not in the file: '1.bias'; other shape: '1.weight [1, 3], "
                                 "in the file [5, 3]'; unused in the file: 1 ('x')\n"),
                ran.err);
  // Zeros of the file, then the second layer as without the file.
  const auto floats = [](const Ran& r) {
    const std::string bytes = data_of(r.weights);
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  };
  const std::vector<float> taken = floats(ran), fresh = floats(run_spec(kNet, {"optimizer.lr=0"}));
  REQUIRE(taken.size() == 13);
  REQUIRE(fresh.size() == 13);
  for (size_t i = 0; i < 9; ++i) CHECK(taken[i] == 0);
  for (size_t i = 9; i < 13; ++i) CHECK(taken[i] == fresh[i]);

  write_sparse(path, {{"0.weights", {3, 2}}, {"1.weight", {5, 3}}});
  const Ran nothing = run(partial);
  CHECK(nothing.code == 4);
  CHECK_MESSAGE(has(nothing.err, "nothing in the file fits the model: 0 of 4 tensors from "),
                nothing.err);
  CHECK_MESSAGE(has(nothing.err, "while reading `initial_weights`"), nothing.err);
}

}  // namespace
}  // namespace dpt
