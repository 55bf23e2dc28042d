// Files of weights that do not fit: what they hold is named, and nothing of it is read.
#include "checkpoint/named_tensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/half.h"
#include "checkpoint/model_file.h"
#include "data/folder.h"
#include "data/peak_growth.h"
#include "formats/tensor_file.h"
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

TEST_CASE(
    "a large parameter is drawn in parts, with the bits of one draw, and not twice in memory") {
  using Kind = Init::Kind;
  for (const Kind kind : {Kind::constant, Kind::uniform, Kind::normal, Kind::truncated})
    for (const Shape& shape : {Shape{2051, 1031}, Shape{3'000'005}, Shape{3, 5}, Shape{}}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(shape.str());
      const Init init{.kind = kind,
                      .a = -0.5,
                      .b = 0.5,
                      .zero_row = shape.rank() > 0 ? 2 : -1,
                      .low = -1,
                      .high = 1};
      Graph graph;
      graph.values.push_back({.name = "w",
                              .desc = {DType::f32, shape},
                              .origin = std::make_shared<const Origin>(Origin{.init = init})});
      graph.parameters = {0};
      Generator generator(7), same(7);
      std::vector<float> whole(static_cast<size_t>(shape.elements())), parts;
      draw(init, shape, generator, whole);
      size_t calls = 0;
      draw_parameters(graph, same, [&](ValueId, int64_t, std::span<const float> rows) {
        parts.insert(parts.end(), rows.begin(), rows.end());
        ++calls;
      });
      CHECK(parts == whole);
      CHECK(generator.state() == same.state());
      CHECK((calls > 1) == (shape.elements() > 1000 && kind != Kind::truncated));
    }
  Graph graph;
  const TensorDesc desc{DType::f32, {4096, 4096}};
  graph.values.push_back(
      {.desc = desc,
       .origin = std::make_shared<const Origin>(Origin{.init = {.kind = Kind::uniform, .b = 1}})});
  graph.parameters = {0};
  Generator generator(1);
  std::vector<float> memory(static_cast<size_t>(desc.shape.elements()));
  const size_t drawing = peak_growth([&] {
    draw_parameters(graph, generator, [&](ValueId, int64_t first, std::span<const float> rows) {
      copy_rows_to(desc.shape, sizeof(float), first, std::as_bytes(rows), Layout::transposed,
                   reinterpret_cast<std::byte*>(memory.data()));
    });
  });
  const NamedTensor tensor{.name = "w",
                           .desc = desc,
                           .data = reinterpret_cast<const std::byte*>(memory.data()),
                           .stored = TensorDesc{DType::f32, desc.shape, Layout::transposed}};
  size_t written = 0;
  const size_t writing =
      peak_growth([&] { tensor.bytes().pass([&](auto bytes) { written += bytes.size(); }); });
  CHECK(written == desc.bytes());
  CHECK(drawing < desc.bytes() / 4);
  CHECK(writing < desc.bytes() / 4);
}

TEST_CASE("weights that do not fit: missing and extra tensors are named, none is read") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  const auto run = [&] { return run_spec(kNet, {"initial_weights=" + path}); };
  std::vector<std::pair<std::string, Shape>> tensors = {
      {"0.weight", {3, 2}}, {"module.0.bias", {3}}, {"1.weight", {1, 3}}, {"1.bias", {1}}};
  write_sparse(path, tensors);
  CHECK(run().code == 0);  // "module." as torch's DataParallel writes it
  // torch.compile, also of a part and together with DDP and with a part in DataParallel.
  write_sparse(path, {{"_orig_mod.0.weight", {3, 2}},
                      {"module._orig_mod.0.bias", {3}},
                      {"_orig_mod.module.1._orig_mod.weight", {1, 3}},
                      {"1.module.bias", {1}}});
  CHECK_MESSAGE(run().code == 0, run().err);
  // As a part of another module, which Lightning's are.
  write_sparse(path, {{"net.model.0.weight", {3, 2}},
                      {"net.model.0.bias", {3}},
                      {"net.model._orig_mod.1.weight", {1, 3}},
                      {"net.model.1.bias", {1}}});
  CHECK_MESSAGE(run().code == 0, run().err);
  write_sparse(path, {{"model.0.weight", {3, 2}}, {"model.1.bias", {1}}, {"loss.scale", {1}}});
  const Ran part = run();
  CHECK(part.code == 4);
  CHECK_MESSAGE(has(part.err, "it has no '0.bias', '1.weight'; it has 'loss.scale', which"),
                part.err);
  write_sparse(path, tensors);
  run_spec(kNet);  // what a run takes anyway

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

TEST_CASE("a layer's weight may have the layer's name, and leading dimensions of 1") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  const auto run = [&] { return run_spec(kNet, {"initial_weights=" + path}); };
  write_sparse(path, {{"0", {1, 3, 2}}, {"0.bias", {1, 1, 3}}, {"1", {3}}, {"1.bias", {1, 1}}});
  CHECK(run().code == 0);
  write_sparse(path, {{"0", {3, 2}}, {"0.bias", {3}}, {"module.1", {1, 3}}, {"1.bias", {1}}});
  CHECK(run().code == 0);
  write_sparse(path, {{"0", {3, 2}}, {"0.bias", {3}}, {"other.1", {1, 3}}, {"1.bias", {1}}});
  CHECK(has(run().err, "it has no '1.weight'; it has 'other.1'"));
  write_sparse(path, {{"0.weight", {3, 1, 2}}, {"0.bias", {3}}, {"1", {1, 3}}, {"1.bias", {1}}});
  CHECK(has(run().err, "its '0.weight' is f32[3, 1, 2], but the model's is f32[3, 2]"));
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

// A file of these tensors, with the bytes of each.
void write_tensors(const std::string& path,
                   const std::vector<std::pair<std::string, TensorDesc>>& tensors,
                   const std::vector<std::string>& bytes) {
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < tensors.size(); ++i)
    all.push_back(
        {tensors[i].first, tensors[i].second, reinterpret_cast<const std::byte*>(bytes[i].data())});
  write_safetensors(path, all);
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<float> floats_of(const Ran& r) {
  const std::string bytes = data_of(r.weights);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST_CASE("weights in f16, bf16 and f64 become float32") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  const std::vector<float> expected = {1, -2, 0.5F, 4, 1.5F, 0.25F, 3, 0, -1, 0.1F, 2, 7, -8};
  const std::vector<double> wide(expected.begin() + 9, expected.begin() + 12);
  std::vector<uint16_t> half, brain;
  for (size_t i = 0; i < 6; ++i) half.push_back(to_f16(expected[i]));
  for (size_t i = 6; i < 9; ++i) brain.push_back(to_bf16(expected[i]));
  write_tensors(path,
                {{"0.weight", {DType::f16, {3, 2}}},
                 {"0.bias", {DType::bf16, {3}}},
                 {"1.weight", {DType::f64, {1, 3}}},
                 {"1.bias", {DType::f32, {1}}}},
                {bytes_of(half), bytes_of(brain), bytes_of(wide), bytes_of<float>({-8})});
  for (const std::string& weights : {path, "{file: " + path + ", partial: true}"}) {
    const Ran ran = run_spec(kNet, {"initial_weights=" + weights, "optimizer.lr=0"});
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    std::vector<float> sorted = floats_of(ran), wanted = expected;
    std::ranges::sort(sorted);  // the file's order is by name
    std::ranges::sort(wanted);
    CHECK(sorted == wanted);
  }
  write_tensors(path,
                {{"0.weight", {DType::i32, {3, 2}}},
                 {"0.bias", {DType::bf16, {3}}},
                 {"1.weight", {DType::f64, {1, 3}}},
                 {"1.bias", {DType::f32, {1}}}},
                {std::string(24, '\0'), bytes_of(brain), bytes_of(wide), bytes_of<float>({-8})});
  const Ran integers = run_spec(kNet, {"initial_weights=" + path});
  CHECK(integers.code == 4);
  CHECK_MESSAGE(has(integers.err, "its '0.weight' is i32[3, 2], but the model's is f32[3, 2]"),
                integers.err);
}

TEST_CASE("check finds values of f16 that are not finite") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  write_tensors(path,
                {{"0.weight", {DType::f16, {3, 2}}},
                 {"0.bias", {DType::f32, {3}}},
                 {"1.weight", {DType::f32, {1, 3}}},
                 {"1.bias", {DType::f32, {1}}}},
                {bytes_of<uint16_t>({0x7c00, 0, 0, 0, 0, 0}), std::string(12, '\0'),
                 std::string(12, '\0'), std::string(4, '\0')});
  folder.write("t.yaml", kNet + "initial_weights: w.safetensors\n");
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  const auto session = make_session(
      load_spec(folder.file("t.yaml"), {}, registries(), files, d, nullptr), {.runs = false}, d);
  REQUIRE_MESSAGE(session, d.render());
  CHECK(has(data_error([&] { check_weight_values(session->settings, session->model); }),
            "1 of the 6 values of '0.weight' are not finite"));
}

TEST_CASE("batch norm's counts may be missing") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  const std::string net = R"(
data: {dataset: {random: {samples: 8, in_features: 2, out_features: 1}}, batch_size: 4}
model: [{linear: 3}, batch_norm1d, {linear: 1}]
loss: mse_loss
optimizer: {sgd: 0.1}
cores: 1
)";
  std::vector<std::pair<std::string, Shape>> tensors = {
      {"0.weight", {3, 2}},    {"0.bias", {3}},        {"1.weight", {3}},    {"1.bias", {3}},
      {"1.running_mean", {3}}, {"1.running_var", {3}}, {"2.weight", {1, 3}}, {"2.bias", {1}}};
  write_sparse(path, tensors);
  const Ran ran = run_spec(net, {"initial_weights=" + path});
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const Ran partial = run_spec(net, {"initial_weights={file: " + path + ", partial: true}"});
  CHECK_MESSAGE(partial.code == 0, partial.err);
  CHECK_FALSE(has(partial.err, "not in the file"));
  tensors.erase(tensors.begin() + 4);
  write_sparse(path, tensors);
  CHECK(has(run_spec(net, {"initial_weights=" + path}).err, "it has no '1.running_mean'"));
}

TEST_CASE("batch norm's counts are read from integers and floats") {
  const Folder folder;
  const std::string path = folder.file("w.safetensors"), name = "1.num_batches_tracked";
  const auto count = [&](DType dtype, const std::string& bytes) {
    write_tensors(path, {{name, {dtype, {1}}}}, {bytes});
    const std::unique_ptr<const TensorFile> file = open_tensor_file(path);
    int64_t out = -1;
    read_counts(*file, *file->find(name), {&out, 1});
    return out;
  };
  CHECK(count(DType::i64, bytes_of<int64_t>({7})) == 7);
  CHECK(count(DType::i32, bytes_of<int32_t>({7})) == 7);
  CHECK(count(DType::f16, bytes_of<uint16_t>({to_f16(7)})) == 7);
  CHECK(count(DType::f16, bytes_of<uint16_t>({0x7c00})) == 0);  // infinite
  CHECK(count(DType::f64, bytes_of<double>({1e300})) == 0);
  const std::string net = R"(
data: {dataset: {random: {samples: 8, in_features: 2, out_features: 3}}, batch_size: 4}
model: [{batch_norm1d: {affine: false}, name: norm}, {linear: 3, name: fc}]
loss: mse_loss
optimizer: {sgd: 0.1}
cores: 1
)";
  write_tensors(path,
                {{"norm.running_mean", {DType::f32, {2}}},
                 {"norm.running_var", {DType::f32, {2}}},
                 {"norm.num_batches_tracked", {DType::i32, {}}},
                 {"fc.weight", {DType::f32, {3, 2}}},
                 {"fc.bias", {DType::f32, {3}}}},
                {bytes_of<float>({0, 0}), bytes_of<float>({1, 1}), bytes_of<int32_t>({7}),
                 std::string(24, '\0'), std::string(12, '\0')});
  const Ran ran = run_spec(net, {"initial_weights=" + path});
  CHECK_MESSAGE(ran.code == 0, ran.err);
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
  const std::vector<float> taken = floats_of(ran),
                           fresh = floats_of(run_spec(kNet, {"optimizer.lr=0"}));
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
