#include "data/readers/npy.h"

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

TEST_CASE("versions 1 to 3 and other spellings of the header") {
  for (const int version : {1, 2, 3})
    CHECK(read(npy(described("|u1", "(3,)"), "abc", version)).size() == 3);
  CHECK(read(npy("{ \"shape\":(3),'descr':'|u1','fortran_order':False}", "abc")).size() == 3);
  const Folder folder;
  CHECK(read_npy(folder.write("a.npy.gz", gzip(npy(described("|u1", "(3,)"), "abc")))).size() == 3);
}

TEST_CASE("messages quote some characters of a header, not all") {
  const std::string long_name(5000, 'q');
  CHECK(why_not(npy(described(long_name, "(1,)"), "abcd")).size() < 400);
  CHECK(why_not(npy("{'descr': " + long_name, "abcd")).size() < 400);
}

TEST_CASE("what can't be read says what to do") {
  CHECK(
      has(why_not(npy(described("<f4", "(1, 1)", true), "abcd")), "Fortran order; write it again"));
  CHECK(has(why_not(npy(described(">f4", "(1,)"), "abcd")), "elements of type '>f4'"));
  CHECK(has(why_not(npy(described("<U3", "(1,)"), "abcd")), "a.astype('float32')"));
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
