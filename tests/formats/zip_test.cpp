#include "formats/zip.h"

#include <doctest/doctest.h>

#include "base/disk.h"
#include "data/folder.h"

namespace dpt {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string archive(const std::vector<std::pair<std::string, std::string>>& members) {
  ZipWriter zip;
  for (const auto& [name, content] : members) zip.add(name, bytes(content));
  std::string out;
  for (const std::span<const std::byte> part : zip.finish())
    out.append(reinterpret_cast<const char*>(part.data()), part.size());
  return out;
}

std::string refusal(const std::string& content) {
  const Folder folder;
  const std::string path = folder.write("a.zip", content);
  return data_error([&] { read_zip_directory(RandomAccessFile(path)); });
}

// The text with a number at an offset from the first occurrence of `at`.
std::string changed(std::string text, std::string_view at, size_t offset, uint8_t value) {
  text[text.find(at) + offset] = static_cast<char>(value);
  return text;
}

constexpr std::string_view kEntry("PK\x01\x02"), kLocal("PK\x03\x04"), kEnd("PK\x05\x06");

}  // namespace

TEST_CASE("an archive is read as it was written, its members aligned") {
  const Folder folder;
  const std::string text = archive({{"a/one", "1"}, {"a/none", ""}, {"a/more", "hello"}});
  const RandomAccessFile file(folder.write("a.zip", text));
  const std::vector<ZipMember> members = read_zip_directory(file);
  REQUIRE(members.size() == 3);
  CHECK(members[0].name == "a/one");
  CHECK(members[1].size == 0);
  CHECK(text.substr(members[2].offset, members[2].size) == "hello");
  for (const ZipMember& m : members) CHECK(m.offset % 64 == 0);
  // The checksum of "hello" by zlib.crc32, where readers verify it.
  CHECK(has(text, std::string("\x86\xa6\x10\x36", 4)));
}

TEST_CASE("an archive with a comment behind its end") {
  std::string text = archive({{"a", "1"}});
  text[text.size() - 2] = 3;
  CHECK(refusal(text + "abc").empty());
}

TEST_CASE("ZIP64 fields") {
  // 70000 members need them.
  const Folder folder;
  std::vector<std::pair<std::string, std::string>> all;
  for (int i = 0; i < 70000; ++i) all.emplace_back(std::to_string(i), "");
  const RandomAccessFile file(folder.write("a.zip", archive(all)));
  const std::vector<ZipMember> members = read_zip_directory(file);
  REQUIRE(members.size() == 70000);
  CHECK(members.back().name == "69999");
  // A size in an extra field, as miniz writes every size for PyTorch: the entry's size, 3, moves
  // to 16 bytes behind its name.
  std::string text = archive({{"a", "xyz"}});
  const size_t entry = text.find(kEntry), end = text.find(kEnd);
  for (size_t i = 20; i < 28; ++i) text[entry + i] = '\xff';
  text[entry + 30] = 20;
  const std::string extra("\x01\0\x10\0\x03\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 20);
  text.insert(entry + 47, extra);
  text[end + 20 + 12] = static_cast<char>(text[end + 20 + 12] + 20);  // bytes of the directory
  const RandomAccessFile sized(folder.write("b.zip", text));
  CHECK(read_zip_directory(sized)[0].size == 3);
}

TEST_CASE("damaged archives are refused") {
  const std::string good = archive({{"a", "12"}, {"b", "3"}});
  CHECK(refusal(good).empty());
  CHECK(has(refusal("PK"), "it is too short"));
  CHECK(has(refusal(good.substr(0, good.size() - 1)), "the end of its directory is missing"));
  CHECK(has(refusal(std::string(100, 'x')), "the end of its directory is missing"));
  CHECK(has(refusal(changed(good, kEntry, 10, 8)), "its member 'a' is compressed"));
  CHECK(has(refusal(changed(good, kEntry, 8, 1)), "its member 'a' is encrypted"));
  CHECK(has(refusal(changed(good, kEntry, 24, 9)), "its member 'a' is compressed"));
  CHECK(has(refusal(changed(good, kEntry, 0, 'x')), "an entry of its directory is wrong"));
  CHECK(has(refusal(changed(good, kEntry, 29, 9)), "its directory is cut short"));
  CHECK(has(refusal(changed(good, kLocal, 0, 'x')), "its directory refers to no member"));
  CHECK(has(refusal(changed(good, kEnd, 19, 1)), "it refers to bytes behind its end"));
  CHECK(has(refusal(changed(good, kEnd, 15, 9)), "its directory is larger"));
  std::string far = changed(changed(good, kEntry, 23, 1), kEntry, 27, 1);
  CHECK(has(refusal(far), "a member is not entirely in the file"));
}

}  // namespace dpt
