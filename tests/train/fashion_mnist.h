// The real Fashion-MNIST for tests that compare with PyTorch's numbers.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "data/tables.h"
#include "paths.h"

namespace dpt {

// Override that makes a spec read it, found where `dptrain configs/...` finds it. Empty where it is
// not on this machine: the test says so and ends. A test can't be left out by a mistake in the
// search: the places where the data is documented to lie are looked at here too.
inline std::string fashion_mnist() {
  namespace fs = std::filesystem;
  const fs::path root = source_file("");
  const std::vector<std::string> names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                          "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  try {
    const auto files = find_files("fashion_mnist", "", (root / "configs").string(), names);
    const fs::path folder = fs::absolute(fs::path(files[0]).parent_path());
    return "data.dataset={fashion_mnist: {path: \"" + folder.string() + "\"}}";
  } catch (const Error& e) {
    REQUIRE(e.fault() == Fault::data);
  }
  std::vector<fs::path> places = {root / "datasets"};
  if (const char* data = std::getenv("DPTRAIN_DATA"))  // NOLINT(concurrency-mt-unsafe)
    places.insert(places.end(), {fs::path(data), fs::path(data) / ".."});
  for (const fs::path& place : places)
    for (const char* name : {"fashion_mnist", "fashion-mnist"})
      for (const char* ending : {"", ".gz"})
        REQUIRE_FALSE(fs::exists(place / name / (names[0] + ending)));
  MESSAGE("skipped: Fashion-MNIST is not on this machine; see datasets/README.md");
  return "";
}

}  // namespace dpt
