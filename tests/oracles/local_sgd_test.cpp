// Runs of local_sgd against a PyTorch program (tests/fixtures/local_sgd.py).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/store.h"
#include "data/folder.h"
#include "formats/safetensors.h"
#include "layers/golden.h"
#include "skip.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using golden::at;
using golden::number;

// Nine steps of 44 weights in float32 against double: errors of some 1e-7 a step, which Adam's
// division by a small root can raise tenfold. Weights that are averaged one step earlier or later,
// or without their momentum, differ by more than 1e-3.
constexpr double kGate = 1e-5;

// The largest difference from tensors by their names.
double worst(const Node& tensors, const std::string& path) {
  const SafeTensorsFile file(path);
  double out = 0;
  for (const auto& [key, expected] : tensors.entries) {
    const std::string name = key.value;
    CAPTURE(name);
    const auto found = std::ranges::find(file.entries(), name, &SafeTensorsFile::Entry::name);
    REQUIRE(found != file.entries().end());
    std::vector<float> values(expected.items.size());
    REQUIRE(found->desc.bytes() == values.size() * sizeof(float));
    file.read(*found, std::as_writable_bytes(std::span(values)));
    for (size_t i = 0; i < values.size(); ++i)
      out = std::max(out, std::abs(values[i] - number(expected.items[i])));
  }
  return out;
}

void check(const Node& test, const std::vector<std::string>& how) {
  CAPTURE(at(at(test, "spec"), "name").text);
  const Folder folder;
  const Ran ran = run_spec_in({.folder = folder.path()}, to_yaml(at(test, "spec")), how);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const std::vector<double> losses = ran.step_losses();
  const std::vector<Node>& expected = at(test, "losses").items;
  REQUIRE(losses.size() == expected.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(losses[i] - number(expected[i])) <= kGate);
  }
  CHECK(worst(at(test, "weights"), folder.file("run/model.safetensors")) <= kGate);
  const std::vector<CheckpointName> saved = checkpoints_in(checkpoint_folder(folder.file("run")));
  REQUIRE(!saved.empty());
  CHECK(worst(at(test, "states"), saved[0].path + "/optimizer.safetensors") <= kGate);
}

}  // namespace

TEST_CASE("local_sgd's losses, weights and optimizer states are those of a PyTorch program") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  const golden::Document fixture = golden::read_fixture("local_sgd");
  int cases = 0;
  for (const Node& test : at(fixture.root, "cases").items) {
    check(test, {"log.every=1", "cores=1"});
    check(test, {"log.every=1", "cores=2"});
    ++cases;
  }
  CHECK(cases == 9);
}

}  // namespace dpt
