#include "base/folder_lock.h"

#include <cerrno>
#include <csignal>
#include <optional>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "data/folder.h"

namespace dpt {
namespace {

// Why the folder is not to be had; empty: it is.
std::string refusal(const std::string& folder) {
  try {
    const FolderLock lock(folder);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST_CASE("is_locked sees a lock of another holder, takes none and makes no file") {
  const Folder folder;
  CHECK(!is_locked(folder.path()));
  CHECK(!std::filesystem::exists(folder.file(".lock")));
  std::optional<FolderLock> lock(std::in_place, folder.path());
  CHECK(is_locked(folder.path()));
  lock.reset();
  CHECK(!is_locked(folder.path()));
  CHECK(refusal(folder.path()).empty());
}

TEST_CASE("a folder is locked by one, who is named, until it lets go") {
  const Folder one, other;
  std::optional<FolderLock> lock(std::in_place, one.path());
  CHECK(refusal(one.path())
            .find(fmt::format("another run is writing to {} (process {} on ", one.path(),
                              getpid())) != std::string::npos);
  CHECK(refusal(other.path()).empty());
  lock.reset();
  CHECK(refusal(one.path()).empty());
  CHECK(refusal(one.file("none")).find("No such file") != std::string::npos);
}

TEST_CASE("a folder on a file system without locks is used, with a warning") {
  const Folder folder;
  const int kept = dup(STDERR_FILENO);
  const int err = open(folder.file("err").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  dup2(err, STDERR_FILENO);
  const FolderLock none(folder.path(), 0, [](int, int) { return errno = ENOLCK, -1; });
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(err);
  CHECK_FALSE(none.exclusive());
  CHECK(read_file(folder.file("err")) ==
        folder.path() +
            " cannot be locked: No locks available; make sure that no other run writes "
            "to this folder\n");
  const FolderLock lock(folder.path());
  CHECK(lock.exclusive());
}

TEST_CASE("a lock ends with the last process that has it, killed or not") {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder.path());
    const pid_t rank = fork();
    if (rank > 0) folder.write("rank", std::to_string(rank));
    while (true) pause();
  }
  std::string rank;
  while ((rank = read_file(folder.file("rank"))).empty()) usleep(1000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK_FALSE(refusal(folder.path()).empty());
  kill(std::stoi(rank), SIGKILL);
  CHECK_NOTHROW(FolderLock(folder.path(), 30));  // the system takes a moment
}

}  // namespace
}  // namespace dpt
