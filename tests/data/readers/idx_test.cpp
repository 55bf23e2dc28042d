#include "data/readers/idx.h"

#include <bit>

#include "../folder.h"
#include "data/tables.h"

namespace dpt {
namespace {

std::string why_not(const std::string& bytes) {
  const Folder folder;
  return data_error([&] { read_idx(folder.write("file", bytes)); });
}

template <class T>
std::vector<T> values(const Table& t) {
  return {values_of<T>(t).begin(), values_of<T>(t).end()};
}

TEST_CASE("bytes of one to four extents, plain and compressed") {
  const Folder folder;
  for (const std::vector<uint32_t>& extents :
       {std::vector<uint32_t>{5}, {2, 3}, {2, 3, 4}, {2, 3, 4, 5}}) {
    const std::string bytes = idx_bytes(extents);
    const std::vector<int64_t> dims(extents.begin(), extents.end());
    for (const std::string& path :
         {folder.write("plain", bytes), folder.write("packed.gz", gzip(bytes))}) {
      const Table t = read_idx(path);
      CHECK(t.desc == TensorDesc{DType::u8, Shape(dims)});
      CHECK(read_idx_header(path) == t.desc);
      CHECK(values<uint8_t>(t).back() == t.desc.shape.elements() - 1);
    }
  }
}

TEST_CASE("every element type becomes u8, i32 or f32") {
  const Folder folder;
  const auto read = [&](uint8_t type, const std::string& elements, uint32_t count) {
    return read_idx(folder.write("file", idx_header(type, {count}) + elements));
  };
  CHECK(values<int32_t>(read(0x09, "\x80\x7f", 2)) == std::vector<int32_t>{-128, 127});
  CHECK(values<int32_t>(read(0x0b, big_endian(0xfffe, 2) + big_endian(300, 2), 2)) ==
        std::vector<int32_t>{-2, 300});
  CHECK(values<int32_t>(read(0x0c, big_endian(0xffffffff, 4) + big_endian(1 << 30, 4), 2)) ==
        std::vector<int32_t>{-1, 1 << 30});
  CHECK(values<float>(read(0x0d, big_endian(std::bit_cast<uint32_t>(-1.5F), 4), 1)) ==
        std::vector<float>{-1.5F});
  CHECK(values<float>(read(0x0e, big_endian(std::bit_cast<uint64_t>(0.1), 8), 1)) ==
        std::vector<float>{0.1F});
}

TEST_CASE("what is not IDX is refused") {
  CHECK(has(why_not(""), "cut short: the header needs 4 bytes at offset 0, but only 0"));
  CHECK(has(why_not("\x89PNG...."), "is not an IDX file: it begins with 89 50 4e 47"));
  CHECK(has(why_not(std::string("\0\0\x0a\x01", 4) + "1234"), "is not an IDX file"));
  CHECK(has(why_not(std::string("\0\0\x08\0", 4) + "1234"), "is not an IDX file"));
  CHECK(has(why_not(std::string("\0\0\x08\x05", 4) + "1234"), "is not an IDX file"));
}

TEST_CASE("a lying header is found before memory is taken for it") {
  const std::string huge = idx_header(0x08, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff});
  CHECK(has(why_not(huge), "which the file (at most 20 bytes) cannot hold"));
  CHECK(has(why_not(gzip(huge)), "cannot hold"));
  CHECK(has(why_not(idx_header(0x0e, {0x80000000, 0x40000000})), "cannot hold"));  // overflows to 0
  CHECK(has(why_not(idx_header(0x08, {100000000}) + "x"), "cannot hold"));
  CHECK(has(why_not(gzip(idx_header(0x08, {4000000}) + "x")),
            "cannot hold"));  // more than deflate can do
  CHECK(has(why_not(idx_header(0x08, {0, 28, 28})),
            "is empty: its header gives the shape [0, 28, 28]"));
}

TEST_CASE("a file that is not exactly as its header says") {
  const std::string good = idx_bytes({30, 4, 4});
  CHECK(why_not(good) == "");
  CHECK(has(why_not(good.substr(0, 10)), "the extents needs 12 bytes at offset 4, but only 6"));
  CHECK(has(why_not(good + "x"), "1 bytes more than its header declares, starting at offset 496"));
  CHECK(has(why_not(gzip(good + "x")), "decompresses to more"));
  CHECK(has(why_not(gzip(good.substr(0, 490))), "but only 474 are left"));
  for (size_t cut = 0; cut < good.size(); cut += 7) {
    CHECK(why_not(good.substr(0, cut)) != "");
    CHECK(why_not(gzip(good.substr(0, cut))) != "");
  }
}

}  // namespace
}  // namespace dpt
