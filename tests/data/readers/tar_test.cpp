#include "data/readers/tar.h"

#include <map>

#include "../archive.h"
#include "../peak_growth.h"
#include "base/units.h"

namespace dpt {
namespace {

std::map<std::string, std::string> members(const std::string& path, const std::string& without,
                                           uint64_t most_bytes = uint64_t{1} << 40) {
  std::map<std::string, std::string> out;
  read_tar(
      path, most_bytes, [&](std::string_view name) { return name != without; },
      [&](const TarMember& m) {
        out[m.name] = {reinterpret_cast<const char*>(m.data.get()), m.size};
      });
  return out;
}

TEST_CASE("tar: the members that are wanted, plain or gzip") {
  const Folder folder;
  const std::string big(3000, 'x');
  const std::string bytes =
      tar({{"dir/a", "one"}, {"dir/b", big}, {"empty", ""}, {"c", std::string(512, 'y')}});
  const std::map<std::string, std::string> expected = {
      {"dir/a", "one"}, {"empty", ""}, {"c", std::string(512, 'y')}};
  CHECK(members(folder.write("a.tar", bytes), "dir/b") == expected);
  CHECK(members(folder.write("a.tar.gz", gzip(bytes)), "dir/b") == expected);
}

TEST_CASE("tar: what is none, is cut short, or lies") {
  const Folder folder;
  const auto why = [&](const std::string& bytes) {
    const std::string path = folder.write("a.tar", bytes);
    return data_error([&] { members(path, ""); });
  };
  const std::string good = tar({{"a", "one"}, {"b", std::string(600, 'x')}});
  CHECK(why(good) == "");
  CHECK(has(why(std::string(2000, 'q')), "a.tar is not a tar archive: the header at offset 0"));
  CHECK(has(why("short"), "is cut short: the header of a member"));
  CHECK(has(why(good.substr(0, 1024)), "is cut short: the header of a member"));
  CHECK(has(why(good.substr(0, 1700)), "is cut short: b needs 600 bytes"));
  std::string lying = tar_header("a", 077777777777);
  CHECK(has(why(lying), "announces 8589934591 bytes, which the archive (at most 512 bytes)"));
  lying[3] = 'z';
  CHECK(has(why(lying), "its checksum is wrong"));
}

TEST_CASE("tar: no more is read or passed over than the limit") {
  const Folder folder;
  // Three members of 1 GiB, of zeros that take no disk.
  constexpr uintmax_t kMember = kGiB;
  const std::string path = folder.write("a.tar", "");
  {
    std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
    for (const char* const name : {"a", "b", "c"}) {
      out << tar_header(name, kMember);
      out.seekp(static_cast<std::streamoff>(kMember), std::ios::cur);
    }
  }
  std::filesystem::resize_file(path, 3 * (kMember + 512) + 1024);
  for (const char* const without : {"a", ""}) {
    CAPTURE(without);
    std::string why;
    CHECK(peak_growth([&] { why = data_error([&] { members(path, without, 256 * kMiB); }); }) <
          kHostileBytes);
    CHECK(has(why, "with member a of 1073741824 bytes, the archive holds more than 256 MiB"));
  }
  const std::string small =
      folder.write("b.tar", tar({{"a", "one"}, {"b", std::string(512, 'x')}}));
  CHECK(members(small, "", 2 * 512 + 512 + 512).size() == 2);  // two headers, two members
  CHECK(has(data_error([&] { members(small, "", 2 * 512 + 512 + 511); }), "with member b"));
  CHECK(has(data_error([&] { members(small, "a", 2 * 512 + 512 + 511); }), "with member b"));
}

}  // namespace
}  // namespace dpt
