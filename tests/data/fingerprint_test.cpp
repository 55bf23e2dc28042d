#include "data/fingerprint.h"

#include <cstring>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

template <class T>
Table table_of(DType type, const Shape& shape, const std::vector<T>& values) {
  const std::shared_ptr<std::byte[]> bytes(new std::byte[values.size() * sizeof(T)]);
  std::memcpy(bytes.get(), values.data(), values.size() * sizeof(T));
  return {.desc = {type, shape}, .data = bytes};
}

// n samples of two features, and their classes. The change is added to the first feature.
Dataset set_of(int n, int changed_sample = -1, float change = 1, int changed_class = -1) {
  std::vector<float> inputs;
  std::vector<int32_t> classes;
  for (int i = 0; i < n; ++i) {
    inputs.push_back(static_cast<float>(i) + (i == changed_sample ? change : 0));
    inputs.push_back(0);
    classes.push_back(i == changed_class ? 2 : i % 2);
  }
  Dataset out;
  out.inputs = table_of(DType::f32, {n, 2}, inputs);
  out.targets = table_of(DType::i32, {n}, classes);
  out.classes = 3;
  return out;
}

// The same samples, made on demand.
struct Reader final : SampleReader {
  Dataset from;
  void read(uint32_t row, std::span<std::byte> out) const override {
    std::memcpy(out.data(), from.inputs.data.get() + row * out.size(), out.size());
  }
};

TEST_CASE("equal data sets have equal fingerprints, however their samples are read") {
  const std::string one = fingerprint(set_of(10));
  CHECK(one.size() == 64);
  CHECK(fingerprint(set_of(10)) == one);
  Dataset read = set_of(10);
  auto reader = std::make_shared<Reader>();
  reader->from = set_of(10);
  read.inputs.data = nullptr;
  read.reader = reader;
  CHECK(fingerprint(read) == one);
}

TEST_CASE("fingerprints differ with sizes, types, classes, samples and targets") {
  const std::string one = fingerprint(set_of(10));
  CHECK(fingerprint(set_of(11)) != one);
  for (int i = 0; i < 10; ++i) {
    CHECK(fingerprint(set_of(10, i)) != one);
    CHECK(fingerprint(set_of(10, -1, 0, i)) != one);
  }
  CHECK(fingerprint(set_of(10, 3, 0x1p-20F)) != one);  // the last bits of a feature
  Dataset classes = set_of(10);
  classes.classes = 4;
  CHECK(fingerprint(classes) != one);
}

TEST_CASE("of large data sets, 64 samples are compared") {
  const std::string one = fingerprint(set_of(6400));
  CHECK(fingerprint(set_of(6400, 100)) != one);
  CHECK(fingerprint(set_of(6400, 6300)) != one);
  CHECK(fingerprint(set_of(6400, 101)) == one);
  CHECK(fingerprint(set_of(6401)) != one);
}

TEST_CASE("a full fingerprint differs with every value") {
  const std::string one = full_fingerprint(set_of(6400));
  CHECK(full_fingerprint(set_of(6400)) == one);
  for (const int i : {0, 1, 101, 6398, 6399}) {
    CHECK(full_fingerprint(set_of(6400, i)) != one);
    CHECK(full_fingerprint(set_of(6400, -1, 0, i)) != one);
  }
  CHECK(full_fingerprint(set_of(6401)) != one);
  for (int n = 1; n < 20; ++n)  // around the four lanes
    for (int i = 0; i < n; ++i)
      CHECK(full_fingerprint(set_of(n, i)) != full_fingerprint(set_of(n)));
  Dataset sized = set_of(3);
  sized.made = false;
  CHECK(full_fingerprint(sized).empty());
  CHECK(fingerprint_of_rows({}).empty());
  const std::vector<uint32_t> rows = {1, 2, 3}, other = {1, 3, 2};
  CHECK(fingerprint_of_rows(rows) != fingerprint_of_rows(other));
}

TEST_CASE("windows of a text that overlap have a fingerprint") {
  Dataset text;
  text.inputs = table_of<int32_t>(DType::i32, {3, 4}, {0, 1, 2, 3, 4, 5});
  text.inputs.stride = 1;
  text.targets = table_of<int32_t>(DType::i32, {3, 4}, {1, 2, 3, 4, 5, 6});
  text.targets.stride = 1;
  Dataset other = text;
  other.inputs = table_of<int32_t>(DType::i32, {3, 4}, {0, 1, 2, 3, 4, 6});
  other.inputs.stride = 1;
  CHECK(fingerprint(text) != fingerprint(other));
  CHECK(fingerprint(text) == fingerprint(text));
}

}  // namespace
}  // namespace dpt
