// A run of a small table, for tests of what is done with its weights.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/process.h"

namespace dpt {

// Two classes by the sign of a number.
inline std::string table(int rows) {
  std::string out = "x,y,kind\n";
  for (int i = 0; i < rows; ++i)
    out += std::to_string(i % 2 == 0 ? 1 + i % 7 : -1 - i % 5) + "," + std::to_string(i % 3) + "," +
           (i % 2 == 0 ? "up" : "down") + "\n";
  return out;
}

// Trains in runs/t/1 of the folder.
inline void train(const Folder& folder, const std::string& more = "") {
  folder.write("train.csv", table(64));
  folder.write("t.yaml", R"(
data:
  dataset: {csv: {path: train.csv, targets: kind, class_names: [down, up]}}
  batch_size: 8
model: [{linear: 8}, relu, {linear: 2}]
loss: cross_entropy
optimizer: {adam: 0.05}
epochs: 20
cores: 1
)" + more);
  const Finished f = dptrain({"t.yaml"}, {}, folder.path());
  REQUIRE_MESSAGE(f.code == 0, f.err);
}

inline Finished predict(const Folder& folder, std::vector<std::string> words) {
  words.insert(words.begin(), "predict");
  return dptrain(words, {}, folder.path());
}

}  // namespace dpt
