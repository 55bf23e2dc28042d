// The specs of configs/large/ with torchvision's weights by name answer what torchvision does
// (tests/fixtures/resnets.py, which has the same formula of the weights).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "engine/cpu/binding.h"
#include "formats/safetensors.h"
#include "layers/golden.h"
#include "paths.h"
#include "train/run_memory.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

// Numbers in [-1, 1) of 24 bits: splitmix64 of the name's FNV-1a hash plus the place. The hashes
// wrap, as they are meant to.
std::vector<double> uniform(std::string_view name, int64_t count) {
  uint64_t seed = 0xCBF29CE484222325;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::vector<double> out(static_cast<size_t>(count));
  for (double& u : out) {
    uint64_t z = seed++ * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    u = static_cast<double>((z ^ z >> 31) >> 40) / (1 << 23) - 1;
  }
  return out;
}

std::vector<float> weights(const Value& v) {
  const Shape& shape = v.desc.shape;
  double scale = 0.1, middle = 0;
  if (shape.rank() > 1)
    scale = std::sqrt(6.0 * static_cast<double>(shape[0]) / static_cast<double>(shape.elements()));
  else if (v.name.ends_with("running_var"))
    scale = 0.75, middle = 1.25;
  else if (v.name.ends_with("weight"))
    scale = 0.2, middle = 1;
  std::vector<float> out;
  for (const double u : uniform(v.name, shape.elements()))
    out.push_back(static_cast<float>(middle + scale * u));
  return out;
}

std::unique_ptr<const Session> session_of(const std::string& model,
                                          const std::string& weights = "") {
  std::vector<std::string> overrides = {
      "data.dataset.synthetic_images={samples: 2, test_samples: 2, shape: [3, 64, 64], classes: " +
          std::string(model == "large/resnet18" ? "10" : "1000") + "}",
      "data.batch_size=2", "evaluate=true", "cores=1"};
  if (model == "large/resnet18") overrides.emplace_back("model.fc.out_features=10");
  if (!weights.empty()) overrides.push_back("initial_weights=" + weights);
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Node tree;
  Spec spec = load_spec(source_file("configs/") + model + ".yaml", overrides, registries(), files,
                        d, &tree);
  std::unique_ptr<const Session> session;
  if (d.ok()) session = make_session(std::move(spec), {}, d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  return session;
}

void write_weights(const Graph& graph, const std::string& path) {
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<float>> contents;
  const int64_t batches = 1;
  for (ValueId v : graph.state()) {
    const Value& value = graph[v];
    const TensorDesc desc{value.desc.dtype, value.desc.shape};
    if (desc.dtype == DType::f32) contents.push_back(weights(value));
    tensors.push_back({value.name, desc,
                       desc.dtype == DType::f32
                           ? reinterpret_cast<const std::byte*>(contents.back().data())
                           : reinterpret_cast<const std::byte*>(&batches)});
  }
  write_safetensors(path, tensors);
}

// [samples, classes], by the program that evaluates the test set.
std::vector<double> output_of(const Session& s) {
  const RunMemory memory(s);
  memory.fill();
  const Buffers& buffers = memory.buffers();
  const Program& program = s.model.test_programs.begin()->second;
  const std::vector<Part> parts = {Part::forward};
  Binding binding(program, reinterpret_cast<std::byte*>(buffers.weights()), nullptr,
                  buffers.activations(), parts);
  const TensorView x = binding.view(program.graph.input);
  const Shape& shape = x.desc.shape;
  REQUIRE(shape == Shape{2, 3, 64, 64});
  const auto steps = strides_of(shape, x.desc.layout);
  const std::vector<double> pixels = uniform("input", shape.elements());
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const int64_t place = i / (3 * 64 * 64) * steps[0] + i / (64 * 64) % 3 * steps[1] +
                          i / 64 % 64 * steps[2] + i % 64 * steps[3];
    x.as<float>()[static_cast<size_t>(place)] =
        static_cast<float>(2 * pixels[static_cast<size_t>(i)]);
  }
  binding.run(Part::forward);
  return golden::content(binding.view(program.graph.output));
}

}  // namespace

TEST_CASE("resnet50_dp is resnet50 on two devices") {
  const std::unique_ptr<const Session> s = session_of("resnet50_dp");
  CHECK(s->settings.mode->name == "dp");
  CHECK(s->devices.topology.devices_per_rank == 2);
  CHECK(s->model.parameters() == session_of("large/resnet50")->model.parameters());
}

TEST_CASE("resnet18 and resnet50 with torchvision's weights answer what torchvision does") {
  const Folder folder;
  const golden::Document fixture = golden::read_fixture("resnets");
  for (const Node& c : golden::at(fixture.root, "cases").items) {
    const std::string model = "large/" + golden::at(c, "model").text;
    CAPTURE(model);
    if (kSanitized && model == "large/resnet50") continue;  // has no code that the other has not
    const std::string path = folder.file("weights.safetensors");
    write_weights(session_of(model)->model.graph, path);
    const std::vector<double> got = output_of(*session_of(model, path));
    const golden::Tensor want = golden::tensor(golden::at(c, "output"));
    const auto stored = static_cast<size_t>(want.shape[1]), classes = got.size() / 2;
    double largest = 0;
    for (const double y : want.data) largest = std::max(largest, std::abs(y));
    // torchvision's are in double. In single precision each of some fifty layers rounds sums of up
    // to 4608 terms, sqrt(4608) * 6e-8 of their size: 3e-5 if all errors had one direction.
    for (size_t n = 0; n < 2; ++n)
      for (size_t k = 0; k < stored; ++k)
        CHECK_MESSAGE(std::abs(got[n * classes + k] - want.data[n * stored + k]) <= 1e-4 * largest,
                      got[n * classes + k], " is not ", want.data[n * stored + k]);
  }
}

}  // namespace dpt
