#include "formats/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "data/folder.h"
#include "data/peak_growth.h"

namespace dpt {
namespace {

struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("dptrain-" + std::to_string(::getpid()) + ".st"))
          .string();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// The message for a file of this header and data; empty if it is read.
std::string why_not(const std::string& header, const std::string& data = "",
                    uint64_t length = ~uint64_t{0}) {
  const TemporaryFile file;
  std::string bytes;
  if (length == ~uint64_t{0}) length = header.size();
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  std::ofstream(file.path, std::ios::binary) << bytes << header << data;
  try {
    SafeTensors::read(file.path);
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::data);
    return e.what();
  }
  return "";
}
std::string row(const std::string& name, const std::string& type, const std::string& shape,
                int64_t begin, int64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST_CASE("what is written is read") {
  const TemporaryFile file;
  const float weights[] = {1, -2.5F, 3};
  const uint8_t byte = 7;
  const int64_t count = -9;
  const auto bytes = [](const auto* p) { return reinterpret_cast<const std::byte*>(p); };
  const NamedTensor tensors[] = {{"b.weight", {DType::f32, {3, 1}}, bytes(weights)},
                                 {"a \"quoted\"\n\xc3\xa4", {DType::u8, {1}}, bytes(&byte)},
                                 {"none", {DType::f32, {0, 4}}, nullptr},
                                 {"n", {DType::i64, {}}, bytes(&count)}};
  write_safetensors(file.path, tensors, {{"format", "pt"}, {"step", "12"}});
  const SafeTensors read = SafeTensors::read(file.path);
  REQUIRE(read.entries().size() == 4);
  CHECK(read.metadata().at("format") == "pt");
  for (const NamedTensor& t : tensors) {
    const SafeTensors::Entry* e = read.find(t.name);
    REQUIRE(e != nullptr);
    CHECK(e->desc == t.desc);
    if (t.desc.bytes() > 0) CHECK(std::memcmp(e->data, t.data, t.desc.bytes()) == 0);
    CHECK(reinterpret_cast<uintptr_t>(e->data) % 8 == 0);
  }
  CHECK(read.find("c") == nullptr);
  // The data starts at a multiple of 64.
  const std::string text = text_of(file.path);
  const auto header =
      static_cast<unsigned char>(text[0]) + 256U * static_cast<unsigned char>(text[1]);
  CHECK((header + 8) % 64 == 0);
  CHECK(text.size() == 8 + header + 12 + 1 + 8);
}

TEST_CASE("one tensor is read without the others") {
  const TemporaryFile file;
  const std::string header = "{" + row("big", "U8", "[8589934592]", 0, 8589934592) + "," +
                             row("x", "U8", "[3]", 8589934592, 8589934595) + "}";
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  std::ofstream(file.path, std::ios::binary) << bytes << header;
  const uintmax_t start = 8 + header.size() + 8 * kGiB;
  std::filesystem::resize_file(file.path, start);
  std::ofstream(file.path, std::ios::binary | std::ios::app) << "abc";
  std::string read(3, '\0');
  CHECK(peak_growth([&] {
          const SafeTensorsFile open(file.path);
          REQUIRE(open.entries().size() == 2);
          CHECK(open.find("big")->desc == TensorDesc{DType::u8, {int64_t{8} << 30}});
          CHECK(open.find("y") == nullptr);
          open.read(*open.find("x"), std::as_writable_bytes(std::span(read)));
        }) < kHostileBytes);
  CHECK(read == "abc");
}

TEST_CASE("special files are refused, not waited for") {
  const Folder folder;
  REQUIRE(::mkfifo(folder.file("fifo").c_str(), 0600) == 0);
  CHECK(has(data_error([&] { SafeTensors::read(folder.file("fifo")); }),
            "fifo is a pipe, not a regular file"));
  CHECK(
      has(data_error([&] { SafeTensors::read("/dev/zero"); }), "is a device, not a regular file"));
  CHECK(has(data_error([&] { SafeTensors::read(folder.path()); }), "is a folder"));
}

TEST_CASE("writing replaces the file and leaves nothing else") {
  const TemporaryFile file;
  write_safetensors(file.path, {});
  const float one = 1;
  const NamedTensor t{"x", {DType::f32, {1}}, reinterpret_cast<const std::byte*>(&one)};
  write_safetensors(file.path, {&t, 1});
  const SafeTensors read = SafeTensors::read(file.path);
  CHECK(read.entries().size() == 1);
  const std::filesystem::path path(file.path);
  const std::string name = ".aside-" + path.filename().string() + "." + std::to_string(::getpid());
  CHECK(is_aside(name));
  CHECK_FALSE(std::filesystem::exists(path.parent_path() / name));
  CHECK_THROWS_AS(write_safetensors("/nowhere/at/all.safetensors", {}), Error);
}

TEST_CASE("headers as other programs write them") {
  CHECK(why_not("{}") == "");
  CHECK(why_not("{" + row("x", "F32", "[1]", 0, 4) + "}   ", "abcd") == "");
  CHECK(
      why_not("{ \"x\" : { \"shape\" : [ ] , \"data_offsets\" : [ 0 , 1 ] , \"dtype\" : \"U8\" } }",
              "a") == "");
  CHECK(why_not("{" + row("\\u00e4\\ud83d\\ude00\\n", "U8", "[1]", 0, 1) + "}", "a") == "");
  // Any order of the names, as long as the bytes are covered.
  CHECK(why_not("{" + row("b", "U8", "[2]", 1, 3) + "," + row("a", "U8", "[1]", 0, 1) + "}",
                "abc") == "");
}

TEST_CASE("lying sizes") {
  CHECK(has(why_not("", "", 0), "must begin with '{'"));
  CHECK(has(why_not("{}", "", 3), "a header of 3 bytes in a file of 10"));
  CHECK(has(why_not("{}", "", uint64_t{1} << 62), "cut short"));
  CHECK(has(why_not(std::string(17 * kMiB, ' ')), "cut short"));
  CHECK(has(why_not("{}", "x"), "holds 1 bytes of data, but its header describes 0"));
  CHECK(has(why_not("{" + row("x", "F32", "[1]", 0, 4) + "}", "abc"), "holds 3 bytes of data"));
  CHECK(has(why_not("{" + row("x", "F32", "[2]", 0, 4) + "}", "abcd"),
            "tensor 'x' [2] f32 does not fit its bytes 0..4"));
  CHECK(
      has(why_not("{" + row("x", "F32", "[4611686018427387904, 4]", 0, 0) + "}"), "does not fit"));
  CHECK(has(why_not("{" + row("x", "U8", "[1]", 2, 1) + "}", "ab"), "does not fit"));
}

TEST_CASE("overlaps, holes and doubles") {
  CHECK(has(
      why_not("{" + row("a", "U8", "[2]", 0, 2) + "," + row("b", "U8", "[2]", 1, 3) + "}", "abc"),
      "tensor 'b' starts at byte 1 of the data, but the previous tensor ends at 2"));
  CHECK(has(
      why_not("{" + row("a", "U8", "[1]", 0, 1) + "," + row("b", "U8", "[1]", 2, 3) + "}", "abc"),
      "starts at"));
  CHECK(has(
      why_not("{" + row("a", "U8", "[1]", 0, 1) + "," + row("a", "U8", "[1]", 1, 2) + "}", "ab"),
      "twice"));
  CHECK(has(why_not("{\"__metadata__\":{},\"__metadata__\":{}}"), "twice"));
  CHECK(has(why_not("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"), "twice"));
}

TEST_CASE("what is not a header") {
  for (const char* json : {"[]", " {}", "{", "{}x", "{\"x\"}", "{\"x\":1}", "{\"x\":{}}",
                           "{\"x\":{\"dtype\":\"F32\"}}", "{\"__metadata__\":{\"a\":1}}",
                           "{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "{\"a\nb\":{}}",
                           "{\"\\x\":{}}", "{\"\\ud800\":{}}", "{\"\\u12\":{}}", "{,}"})
    CHECK(has(why_not(json), "not a valid safetensors file"));
  CHECK(has(why_not("{" + row("x", "F8", "[1]", 0, 1) + "}", "a"), "has dtype 'F8'"));
  CHECK(has(why_not("{" + row("x", "U8", "[1,1,1,1,1,1,1]", 0, 1) + "}", "a"), "too long"));
  CHECK(has(why_not("{" + row("x", "U8", "[-1]", 0, 1) + "}", "a"), "whole number"));
  CHECK(has(why_not("{" + row("x", "U8", "[01]", 0, 1) + "}", "a"), "begins with 0"));
  CHECK(has(why_not("{" + row("x", "U8", "[1.0]", 0, 1) + "}", "a"), "expected"));
  CHECK(has(why_not("{" + row(std::string(600, 'n'), "U8", "[1]", 0, 1) + "}", "a"), "too long"));
}

TEST_CASE("messages quote some characters of a name, not all") {
  const std::string name(500, 'n');
  for (const std::string& header :
       {row(name, "F8", "[1]", 0, 1), row("x", name, "[1]", 0, 1), row(name, "U8", "[2]", 0, 1),
        "\"" + name + "\":{\"" + name + "\":1}", row(name, "U8", "[1]", 1, 2)}) {
    CAPTURE(header);
    const std::string why = why_not("{" + header + "}", "a");
    CHECK(has(why, std::string(40, 'n')));
    CHECK_FALSE(has(why, std::string(81, 'n')));
  }
}

TEST_CASE("a hundred thousand overlapping tensors are refused quickly") {
  std::string header = "{";
  for (int i = 0; i < 100000; ++i)
    header += (i > 0 ? "," : "") + row(std::to_string(i), "U8", "[1]", 0, 1);
  CHECK(has(why_not(header + "}", "a"), "more than 65536 tensors"));
}

}  // namespace
}  // namespace dpt
