#include "data/readers/bytes.h"

#include "../folder.h"

namespace dpt {
namespace {

std::string read(ByteSource& source, size_t bytes) {
  std::string out(bytes, '\0');
  source.read(std::as_writable_bytes(std::span(out)), "the text");
  return out;
}

TEST_CASE("plain and compressed files give the same bytes in any pieces") {
  const Folder folder;
  const std::string text(100000, 'q');
  for (const std::string& path :
       {folder.write("plain", text), folder.write("packed", gzip(text))}) {
    const auto source = open_bytes(path);
    CHECK(source->most_bytes() >= text.size());
    CHECK(read(*source, 1) + read(*source, 99990) + read(*source, 9) == text);
    source->expect_end();
  }
}

TEST_CASE("a missing file, a folder") {
  const Folder folder;
  CHECK(
      has(data_error([&] { open_bytes(folder.file("none")); }), "cannot be opened: No such file"));
  CHECK(has(data_error([&] { open_bytes(folder.path()); }), "is not a file"));
}

TEST_CASE("a file that is cut short says where") {
  const Folder folder;
  const auto plain = open_bytes(folder.write("plain", "abc"));
  const std::string why = data_error([&] { read(*plain, 5); });
  CHECK(has(why, "plain is cut short: the text needs 5 bytes at offset 0, and only 3 are there"));

  const std::string packed = gzip(std::string(100000, 'q'));
  const auto cut = open_bytes(folder.write("cut", packed.substr(0, packed.size() - 12)));
  CHECK(has(data_error([&] { read(*cut, 100000); }), "is cut short: its gzip data ends"));
  const auto short_text = open_bytes(folder.write("short", gzip("abc")));
  CHECK(has(data_error([&] { read(*short_text, 5); }),
            "needs 5 decompressed bytes at offset 0, and only 3"));
}

TEST_CASE("more than was announced is refused") {
  const Folder folder;
  const auto plain = open_bytes(folder.write("plain", "abcd"));
  read(*plain, 3);
  CHECK(has(data_error([&] { plain->expect_end(); }),
            "1 bytes more than its header announces, from offset 3"));
  const auto packed = open_bytes(folder.write("packed", gzip("abcd")));
  read(*packed, 3);
  CHECK(has(data_error([&] { packed->expect_end(); }), "decompresses to more than the 3 bytes"));
  const auto twice = open_bytes(folder.write("twice", gzip("abcd") + "x"));
  read(*twice, 4);
  CHECK(
      has(data_error([&] { twice->expect_end(); }), "has 1 bytes after the end of its gzip data"));
}

TEST_CASE("a flipped bit in compressed data is found") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919 % 1000);
  const std::string packed = gzip(text);
  for (const size_t at : {size_t{30}, packed.size() / 2, packed.size() - 8, packed.size() - 2}) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    const auto source = open_bytes(folder.write("damaged", damaged));
    CHECK(data_error([&] {
            read(*source, text.size());
            source->expect_end();
          }) != "");
  }
}

}  // namespace
}  // namespace dpt
