#include "data/readers/npy.h"

#include <algorithm>
#include <cstring>

#include "../folder.h"
#include "data/tables.h"

namespace dpt {
namespace {

// As numpy writes it, but for the padding.
std::string npy(const std::string& header, const std::string& elements, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (size_t i = 0; i < (version == 1 ? 2 : 4); ++i)
    out += static_cast<char>(header.size() >> (8 * i));
  return out + header + elements;
}

std::string described(const std::string& type, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }          \n";
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Table read(const std::string& bytes) {
  const Folder folder;
  return read_npy(folder.write("a.npy", bytes));
}
std::string why_not(const std::string& bytes) {
  return data_error([&] { read(bytes); });
}

template <class T>
std::vector<T> values(const Table& t) {
  return {values_of<T>(t).begin(), values_of<T>(t).end()};
}

TEST_CASE("every element type becomes f32, i32 or u8") {
  const Table f4 = read(npy(described("<f4", "(2, 1)"), bytes_of<float>({1.5F, -2})));
  CHECK(f4.desc == TensorDesc{DType::f32, {2, 1}});
  CHECK(values<float>(f4) == std::vector<float>{1.5F, -2});
  CHECK(values<float>(read(npy(described("<f8", "(1,)"), bytes_of<double>({0.1})))) ==
        std::vector<float>{0.1F});
  CHECK(values<int32_t>(read(npy(described("<i4", "(2,)"), bytes_of<int32_t>({-7, 7})))) ==
        std::vector<int32_t>{-7, 7});
  CHECK(values<int32_t>(read(npy(described("<i8", "(2,)"), bytes_of<int64_t>({-7, 7})))) ==
        std::vector<int32_t>{-7, 7});
  CHECK(values<uint8_t>(read(npy(described("|u1", "(2,)"), "\x01\xff"))) ==
        std::vector<uint8_t>{1, 255});
  CHECK(values<uint8_t>(read(npy(described("|b1", "(1,)"), "\x01"))) == std::vector<uint8_t>{1});
}

template <class T>
std::string big(const std::vector<T>& values) {
  std::string out;
  for (const T& v : values) {
    std::string bytes = bytes_of<T>({v});
    std::ranges::reverse(bytes);
    out += bytes;
  }
  return out;
}

TEST_CASE("small and unsigned integers become i32, halves f32") {
  const auto integers = [](const std::string& type, const std::string& bytes) {
    const Table t = read(npy(described(type, "(2,)"), bytes));
    CHECK(t.desc == TensorDesc{DType::i32, {2}});
    return values<int32_t>(t);
  };
  CHECK(integers("|i1", bytes_of<int8_t>({-128, 127})) == std::vector<int32_t>{-128, 127});
  CHECK(integers("<i2", bytes_of<int16_t>({-300, 300})) == std::vector<int32_t>{-300, 300});
  CHECK(integers("<u2", bytes_of<uint16_t>({1, 65535})) == std::vector<int32_t>{1, 65535});
  CHECK(integers("<u4", bytes_of<uint32_t>({1, 2147483647})) ==
        std::vector<int32_t>{1, 2147483647});
  CHECK(integers("<u8", bytes_of<uint64_t>({1, 70000})) == std::vector<int32_t>{1, 70000});
  CHECK(
      values<float>(read(npy(described("<f2", "(3,)"), bytes_of<uint16_t>({0x3e00, 0xc000, 1})))) ==
      std::vector<float>{1.5F, -2, 0x1p-24F});
  CHECK(has(why_not(npy(described("<u4", "(1,)"), bytes_of<uint32_t>({4294967295U}))),
            "element 0 is 4294967295, which does not fit"));
  CHECK(has(why_not(npy(described("<u8", "(1,)"), bytes_of<uint64_t>({uint64_t{1} << 63}))),
            "element 0 is 9223372036854775808, which does not fit"));
}

TEST_CASE("big-endian files have the same numbers") {
  CHECK(values<float>(read(npy(described(">f4", "(2,)"), big<float>({1.5F, -2})))) ==
        std::vector<float>{1.5F, -2});
  CHECK(values<float>(read(npy(described(">f8", "(1,)"), big<double>({0.1})))) ==
        std::vector<float>{0.1F});
  CHECK(values<float>(read(npy(described(">f2", "(1,)"), big<uint16_t>({0x3e00})))) ==
        std::vector<float>{1.5F});
  CHECK(values<int32_t>(read(npy(described(">i4", "(2,)"), big<int32_t>({-7, 258})))) ==
        std::vector<int32_t>{-7, 258});
  CHECK(values<int32_t>(read(npy(described(">i8", "(1,)"), big<int64_t>({-258})))) ==
        std::vector<int32_t>{-258});
  CHECK(values<uint8_t>(read(npy(described(">u1", "(1,)"), "\x07"))) == std::vector<uint8_t>{7});
}

TEST_CASE("Fortran order is read into C order") {
  // a[i, j, k] = 100 i + 10 j + k of shape (2, 3, 2), stored with i fastest.
  std::vector<int32_t> stored, expected;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) stored.push_back(100 * i + 10 * j + k);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k) expected.push_back(100 * i + 10 * j + k);
  const Table t = read(npy(described("<i4", "(2, 3, 2)", true), bytes_of(stored)));
  CHECK(t.desc.shape == Shape{2, 3, 2});
  CHECK(values<int32_t>(t) == expected);
  CHECK(values<uint8_t>(read(npy(described("|u1", "(2, 2)", true), "\x01\x02\x03\x04"))) ==
        std::vector<uint8_t>{1, 3, 2, 4});
  CHECK(values<float>(read(npy(described(">f4", "(2, 2)", true), big<float>({1, 2, 3, 4})))) ==
        std::vector<float>{1, 3, 2, 4});
  CHECK(values<float>(read(npy(described("<f4", "(2,)", true), bytes_of<float>({1, 2})))) ==
        std::vector<float>{1, 2});
}

TEST_CASE("versions 1 to 3 and other spellings of the header") {
  for (const int version : {1, 2, 3})
    CHECK(read(npy(described("|u1", "(3,)"), "abc", version)).size() == 3);
  CHECK(read(npy("{ \"shape\":(3),'descr':'|u1','fortran_order':False}", "abc")).size() == 3);
  // Long integers, as NumPy wrote them under Python 2.
  CHECK(read(npy(described("|u1", "(3L, 1L)"), "abc")).size() == 3);
  CHECK(read(npy(described("|u1", "(3L,)"), "abc")).size() == 3);
  CHECK(has(why_not(npy(described("|u1", "(3LL,)"), "abc")), "cannot parse the NPY header"));
  const Folder folder;
  CHECK(read_npy(folder.write("a.npy.gz", gzip(npy(described("|u1", "(3,)"), "abc")))).size() == 3);
}

TEST_CASE("messages quote some characters of a header, not all") {
  const std::string long_name(5000, 'q');
  CHECK(why_not(npy(described(long_name, "(1,)"), "abcd")).size() < 400);
  CHECK(why_not(npy("{'descr': " + long_name, "abcd")).size() < 400);
}

TEST_CASE("what can't be read says what to do") {
  CHECK(has(why_not(npy(described(">c8", "(1,)"), "abcdefgh")), "elements of type '>c8'"));
  CHECK(
      has(why_not(npy(described(">c8", "(1,)"), "abcdefgh")), "numpy.stack([a.real, a.imag], 1)"));
  CHECK(has(why_not(npy(described("<i3", "(1,)"), "abc")), "elements of type '<i3'"));
  CHECK(has(why_not(npy(described("<U3", "(1,)"), "abcd")),
            "by replacing texts with class numbers: numpy.unique(a, return_inverse=True)[1]"));
  CHECK(has(why_not(npy(described("<i3", "(1,)"), "abc")), "with a.astype('float32')"));
  CHECK(has(why_not("PK\x03\x04 and so on"), "NPZ archive"));
  CHECK(has(
      why_not(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd")),
      "named fields"));
  CHECK(has(why_not(npy(described("<i8", "(2,)"), bytes_of<int64_t>({1, int64_t{1} << 40}))),
            "element 1 is 1099511627776, which does not fit"));
  CHECK(has(why_not(npy(described("|u1", "()"), "a")), "has 0 dimensions"));
  CHECK(has(why_not(npy(described("|u1", "(1,1,1,1,1,1,1)"), "a")), "has 7 dimensions"));
}

TEST_CASE("lying headers and cut files") {
  const std::string good = npy(described("<f4", "(2, 3)"), std::string(24, '\0'));
  CHECK(why_not(good) == "");
  for (size_t cut = 0; cut < good.size(); ++cut) CHECK(why_not(good.substr(0, cut)) != "");
  CHECK(has(why_not(good + "x"), "more than its header declares"));
  CHECK(has(why_not(npy(described("<f4", "(4294967296, 4294967296)"), "")), "cannot hold"));
  CHECK(has(why_not(npy(described("<f4", "(99999999999999999999,)"), "")),
            "cannot parse the NPY header"));
  CHECK(has(why_not(npy(described("<f4", "(-1,)"), "")), "cannot parse the NPY header"));
  CHECK(has(why_not(npy(described("<f4", "(0, 3)"), "")), "is empty: its shape is"));
  CHECK(has(why_not(npy("{'descr': '<f4'}", "")), "cannot parse the NPY header"));
  CHECK(has(why_not(npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", "")),
            "cannot parse the NPY header"));
  CHECK(
      has(why_not(npy(described("<f4", "(1,)") + "more", "abcd")), "cannot parse the NPY header"));
  CHECK(has(why_not(npy(std::string(70000, ' '), "", 2)), "is too large"));
  CHECK(has(why_not(npy("{}", "", 9)), "version 9"));
}

}  // namespace
}  // namespace dpt
