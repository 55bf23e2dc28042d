#include "comm/once_per_job.h"

#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/folder.h"

namespace dpt {
namespace {

TEST_CASE("one process of a job says it") {
  const Folder folder;
  const std::string locks = folder.file("locks");
  std::optional<OncePerJob> first(std::in_place, "job", "cores", locks);
  CHECK(first->speaks());
  CHECK_FALSE(OncePerJob("job", "cores", locks).speaks());
  CHECK(OncePerJob("job", "waits", locks).speaks());
  CHECK(OncePerJob("another job", "cores", locks).speaks());
  first.reset();
  CHECK(OncePerJob("job", "cores", locks).speaks());
}

TEST_CASE("where there can be no lock everybody says it") {
  const Folder folder;
  const std::string no_directory = folder.write("file", "");
  const OncePerJob first("job", "cores", no_directory);
  CHECK(first.speaks());
  CHECK(OncePerJob("job", "cores", no_directory).speaks());
}

}  // namespace
}  // namespace dpt
