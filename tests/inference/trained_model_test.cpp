#include "inference/trained_model.h"

#include <cmath>

#include "formats/torch_file.h"
#include "inference/trained.h"

namespace dpt {
namespace {

// Outputs of samples whose elements count up.
std::vector<float> run(TrainedModel& model, int64_t samples, int64_t inputs) {
  std::vector<float> out(static_cast<size_t>(samples * model.output().elements()));
  model.run(
      samples,
      [&](int64_t first, int64_t count, std::byte* to) {
        auto* x = reinterpret_cast<float*>(to);
        for (int64_t i = 0; i < count * inputs; ++i)
          x[i] = static_cast<float>((first * inputs + i) % 17) - 8;
      },
      out);
  return out;
}

const TensorDesc kImage{DType::f32, {2, 6, 6}};

std::string convolutions() {
  return with_model(
      "[{conv2d: {out_channels: 4, kernel_size: 3, padding: 1}}, batch_norm2d, relu, {dropout: "
      "0.5}, "
      "{max_pool2d: 2}, flatten, {linear: 3}]");
}

}  // namespace

TEST_CASE("a linear layer by hand") {
  const Folder folder;
  const LoadedText text(with_model("[{linear: 2}]"));
  const float weight[] = {1, 2, 3, 4}, bias[] = {0.5, -0.5};
  const auto bytes = [](const float* p) { return reinterpret_cast<const std::byte*>(p); };
  const NamedTensor tensors[] = {{"0.weight", {DType::f32, {2, 2}}, bytes(weight)},
                                 {"0.bias", {DType::f32, {2}}, bytes(bias)}};
  write_safetensors(folder.file("w.safetensors"), tensors);
  write_torch(folder.file("w.pt"), tensors);
  for (const char* file : {"w.safetensors", "w.pt"}) {
    TrainedModel model(text.spec, {DType::f32, {2}}, folder.file(file));
    CHECK(model.output() == Shape{2});
    const float x[] = {1, 10};
    std::vector<float> y(2);
    model.run_one(std::as_bytes(std::span(x)), y);
    CHECK(y == std::vector<float>{21.5, 42.5});
  }
}

TEST_CASE("a sample's output does not depend on the other samples") {
  const Folder folder;
  const LoadedText text(convolutions());
  const Weights weights(text.spec, kImage);
  write_safetensors(folder.file("w"), weights.list);
  TrainedModel model(text.spec, kImage, folder.file("w"));
  const int64_t inputs = kImage.shape.elements();
  const std::vector<float> many = run(model, 101, inputs), one = run(model, 1, inputs);
  REQUIRE(many.size() == 303);
  for (size_t i = 0; i < 3; ++i) CHECK(many[i] == doctest::Approx(one[i]).epsilon(1e-5));
  CHECK(run(model, 101, inputs) == many);
  CHECK(std::ranges::all_of(many, [](float y) { return std::isfinite(y); }));
  CHECK(run(model, 0, inputs).empty());
}

TEST_CASE("an error of the samples' source is passed on") {
  const Folder folder;
  const LoadedText text(with_model("[{linear: 2}]"));
  const Weights weights(text.spec, {DType::f32, {2}});
  write_safetensors(folder.file("w"), weights.list);
  TrainedModel model(text.spec, {DType::f32, {2}}, folder.file("w"));
  std::vector<float> out(400);
  const auto fill = [](int64_t first, int64_t, std::byte*) {
    if (first > 0) throw Error(Fault::data, "a broken image");
  };
  CHECK(data_error([&] { model.run(200, fill, out); }) == "a broken image");
}

TEST_CASE("weights that do not fit the model, and models whose samples depend on each other") {
  const Folder folder;
  const LoadedText text(with_model("[{linear: 2}]"));
  const Weights weights(text.spec, {DType::f32, {3}});
  write_safetensors(folder.file("w"), weights.list);
  CHECK(has(data_error([&] {
              TrainedModel(text.spec, {DType::f32, {2}}, folder.file("w"));
            }),
            "does not fit the model: its '0.weight' is f32[2, 3], but the model's is f32[2, 2]"));
  const LoadedText batch(with_model("[{linear: 2}, {batch_norm1d: {track_running_stats: false}}]"));
  CHECK(has(error_of(Fault::spec,
                     [&] {
                       TrainedModel(batch.spec, {DType::f32, {2}}, folder.file("w"));
                     }),
            "normalizes with the statistics of a batch"));
  CHECK(has(error_of(Fault::spec,
                     [&] {
                       evaluation_graph(text.spec, {DType::i32, {2}}, 1);
                     }),
            "the model does not fit the samples:"));
}

}  // namespace dpt
