#include "data/write_npy.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "data/folder.h"
#include "data/readers/npy.h"
#include "data/tables.h"

namespace dpt {
namespace {

template <class T>
Table table_of(DType dtype, const Shape& shape, const std::vector<T>& values) {
  NewTable table({dtype, shape});
  std::ranges::copy(values, table.as<T>().begin());
  return std::move(table).done();
}

// Sample n is n, n + 1, ...
struct Counter : SampleReader {
  void read(uint32_t row, std::span<std::byte> out) const override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(row + i);
  }
};

}  // namespace

TEST_CASE("arrays that are written can be read again, as many samples as were asked for") {
  const Folder folder;
  const std::string path = folder.file("a.npy");
  write_npy(path, table_of<float>(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6}), nullptr, 2);
  const Table floats = read_npy(path);
  CHECK(floats.desc.dtype == DType::f32);
  CHECK(floats.desc.shape == Shape{2, 2});
  CHECK(std::ranges::equal(values_of<float>(floats), std::vector<float>{1, 2, 3, 4}));
  CHECK(std::filesystem::file_size(path) == 128 + 4 * sizeof(float));  // aligned to 64 bytes

  write_npy(path, table_of<int32_t>(DType::i32, {2}, {-7, 9}), nullptr, 2);
  const Table classes = read_npy(path);
  CHECK(classes.desc.shape == Shape{2});
  CHECK(std::ranges::equal(values_of<int32_t>(classes), std::vector<int32_t>{-7, 9}));

  Table overlapping = table_of<int32_t>(DType::i32, {2, 2}, {1, 2, 3, 4});
  overlapping.stride = 1;
  write_npy(path, overlapping, nullptr, 2);
  CHECK(std::ranges::equal(values_of<int32_t>(read_npy(path)), std::vector<int32_t>{1, 2, 2, 3}));
}

TEST_CASE("arrays are written from samples that are made one by one") {
  const Folder folder;
  const std::string path = folder.file("a.npy");
  const Counter reader;
  write_npy(path, {{DType::u8, {5, 1, 2, 1}}, nullptr}, &reader, 3);
  const Table bytes = read_npy(path);
  CHECK(bytes.desc.shape == Shape{3, 1, 2, 1});
  CHECK(std::ranges::equal(values_of<uint8_t>(bytes), std::vector<uint8_t>{0, 1, 1, 2, 2, 3}));
}

TEST_CASE("an array that cannot be written names its file") {
  const Folder folder;
  const std::string path = folder.file("missing/a.npy");
  CHECK_THROWS_AS(write_npy(path, table_of<int32_t>(DType::i32, {1}, {0}), nullptr, 1), Error);
}

}  // namespace dpt
