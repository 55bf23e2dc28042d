#include "base/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "data/folder.h"

namespace dpt {
namespace {

TEST_CASE("a whole file is read if it is a regular one within the limit") {
  const Folder folder;
  const std::string path = folder.write("a.txt", "12345");
  CHECK(read_file(path, 5) == "12345");
  CHECK_THROWS_WITH_AS(read_file(path, 4), doctest::Contains("a.txt has 5 bytes; at most 4"),
                       Error);
  CHECK_THROWS_WITH_AS(read_file(folder.file("none"), 4),
                       doctest::Contains("none cannot be opened: No such"), Error);
  CHECK_THROWS_WITH_AS(read_file("/dev/zero", 4), "/dev/zero is a device, not a regular file",
                       Error);
  CHECK_THROWS_WITH_AS(read_file(folder.path(), 4),
                       doctest::Contains("is a folder, not a regular file"), Error);
  CHECK(read_file("/proc/self/status", 1 << 20).starts_with("Name:"));  // its size is given as 0
  CHECK_THROWS_WITH_AS(read_file("/proc/self/status", 10), doctest::Contains("at most 10"), Error);
}

TEST_CASE("a FIFO without a writer is refused, not waited for") {
  const Folder folder;
  REQUIRE(::mkfifo(folder.file("fifo").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(read_file(folder.file("fifo"), 4),
                       doctest::Contains("is a pipe, not a regular file"), Error);
}

}  // namespace
}  // namespace dpt
