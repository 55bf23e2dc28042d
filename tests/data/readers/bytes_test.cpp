#include "data/readers/bytes.h"

#include <cstring>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "../folder.h"
#include "../peak_growth.h"
#include "base/units.h"

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

TEST_CASE("a missing file, a folder, and special files, which are not waited for") {
  const Folder folder;
  const auto why = [](const std::string& path) { return data_error([&] { open_bytes(path); }); };
  CHECK(has(why(folder.file("none")), "cannot be opened: No such file"));
  CHECK(has(why(folder.path()), "is a folder, not a regular file"));
  CHECK(why("/dev/zero") == "/dev/zero is a device, not a regular file");
  REQUIRE(::mkfifo(folder.file("fifo").c_str(), 0600) == 0);
  CHECK(has(why(folder.file("fifo")), "fifo is a pipe, not a regular file"));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, folder.file("socket").c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(has(why(folder.file("socket")), "cannot be opened"));
  ::close(fd);
}

TEST_CASE("several gzip members are one stream, wherever they are cut") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 60000; ++i) text += std::to_string(i * 7919 % 1000);
  std::string packed = gzip("");
  size_t begin = 0;
  for (const size_t end : {size_t{1}, size_t{1}, size_t{90000}, text.size()}) {
    packed += gzip(text.substr(begin, end - begin));
    begin = end;
  }
  const auto source = open_bytes(folder.write("members", packed));
  const std::string first = read(*source, 50000), rest = read(*source, text.size() - 50000);
  const bool same = first + rest == text;
  CHECK(same);
  source->expect_end();
  const auto more = open_bytes(folder.write("more", packed + gzip("x")));
  read(*more, text.size());
  CHECK(has(data_error([&] { more->expect_end(); }), "decompresses to more than"));
  const auto cut = open_bytes(folder.write("cut", packed + gzip("x").substr(0, 5)));
  read(*cut, text.size());
  CHECK(has(data_error([&] { cut->expect_end(); }), "is cut short"));
}

TEST_CASE("gzip members that hold nothing come to an end") {
  const Folder folder;
  const std::string empty = gzip("");
  std::string packed;
  for (int i = 0; i < 270000; ++i) packed += empty;
  const auto source = open_bytes(folder.write("empty", packed + gzip("x")));
  CHECK(has(data_error([&] { read(*source, 1); }), "has more than 262144 gzip members"));
}

TEST_CASE("peak_growth sees what is touched") {
  constexpr size_t kBytes = 100 * kMiB;
  const size_t growth = peak_growth([&] {
    const std::vector<char> touched(kBytes, 1);
    CHECK(touched.back() == 1);
  });
  CHECK(growth > kBytes / 10 * 9);
}

TEST_CASE("a file that is cut short says where") {
  const Folder folder;
  const auto plain = open_bytes(folder.write("plain", "abc"));
  const std::string why = data_error([&] { read(*plain, 5); });
  CHECK(has(why, "plain is cut short: the text needs 5 bytes at offset 0, but only 3 are left"));

  const std::string packed = gzip(std::string(100000, 'q'));
  const auto cut = open_bytes(folder.write("cut", packed.substr(0, packed.size() - 12)));
  CHECK(has(data_error([&] { read(*cut, 100000); }), "is cut short: its gzip data ends"));
  const auto short_text = open_bytes(folder.write("short", gzip("abc")));
  CHECK(has(data_error([&] { read(*short_text, 5); }),
            "needs 5 decompressed bytes at offset 0, but only 3"));
}

TEST_CASE("more than was announced is refused") {
  const Folder folder;
  const auto plain = open_bytes(folder.write("plain", "abcd"));
  read(*plain, 3);
  CHECK(has(data_error([&] { plain->expect_end(); }),
            "1 bytes more than its header declares, starting at offset 3"));
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
