#include "base/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
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
  CHECK(read_file("/proc/self/status", kMiB).starts_with("Name:"));  // its size is given as 0
  CHECK_THROWS_WITH_AS(read_file("/proc/self/status", 10), doctest::Contains("at most 10"), Error);
}

TEST_CASE("a FIFO without a writer is refused, not waited for") {
  const Folder folder;
  REQUIRE(::mkfifo(folder.file("fifo").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(read_file(folder.file("fifo"), 4),
                       doctest::Contains("is a pipe, not a regular file"), Error);
}

TEST_CASE("a stream is read to its end, a pipe or a device too, but no further than the limit") {
  const Folder folder;
  CHECK(read_stream(folder.write("a.txt", "12345"), 5) == "12345");
  CHECK_THROWS_WITH_AS(read_stream(folder.file("a.txt"), 4),
                       doctest::Contains("a.txt has more than 4 bytes"), Error);
  CHECK_THROWS_WITH_AS(read_stream("/dev/zero", 1000), "/dev/zero has more than 1000 bytes", Error);
  CHECK(read_stream("/dev/null", 0).empty());
  CHECK_THROWS_WITH_AS(read_stream(folder.path(), 4), doctest::Contains("is a folder, not a file"),
                       Error);
  CHECK_THROWS_WITH_AS(read_stream(folder.file("none"), 4),
                       doctest::Contains("none cannot be opened: No such"), Error);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "abc", 3) == 3);
  ::close(ends[1]);
  CHECK(read_stream("/proc/self/fd/" + std::to_string(ends[0]), 3) == "abc");
  ::close(ends[0]);
}

}  // namespace
}  // namespace dpt
