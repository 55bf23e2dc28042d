#include "comm/core_lease.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/folder.h"

#if !defined(__SANITIZE_THREAD__)  // which does not follow processes

namespace dpt {
namespace {

using Cores = std::vector<int>;
const Cores kFour = {1, 3, 4, 9};

// A directory that is closed to others, as private_directory() wants it.
struct Locks {
  Folder folder;
  std::string path = folder.file("locks");
};

// What a process of its own gets, which ends at once.
size_t elsewhere(const std::string& directory, size_t wanted, Cores expected) {
  const pid_t child = fork();
  if (child == 0) _exit(CoreLease(kFour, wanted, directory).cores() == expected ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST_CASE("leases take the first free cores, all that are wanted or none") {
  const Locks locks;
  const CoreLease none;
  CHECK(none.cores().empty());
  std::optional<CoreLease> first(std::in_place, kFour, 1, locks.path);
  CHECK(first->cores() == Cores{1});
  const CoreLease second(kFour, 2, locks.path);
  CHECK(second.cores() == Cores{3, 4});
  CHECK(second.taken() == 1);
  const CoreLease third(kFour, 2, locks.path);
  CHECK(third.cores().empty());
  CHECK(third.taken() == 3);
  CHECK(CoreLease(kFour, 1, locks.path).cores() == Cores{9});  // the third one has kept nothing
  CHECK(CoreLease(Cores{3, 9}, 1, locks.path).cores() == Cores{9});
  first.reset();
  CHECK(CoreLease(kFour, 2, locks.path).cores() == Cores{1, 9});
  CHECK(elsewhere(locks.path, 2, {1, 9}));
}

TEST_CASE("a lease lasts until the last forked process is gone, killed or not") {
  const Locks locks;
  const pid_t child = fork();
  if (child == 0) {
    const CoreLease lease(kFour, 3, locks.path);
    const pid_t rank = fork();
    if (rank > 0) locks.folder.write("rank", std::to_string(rank));
    while (true) pause();
  }
  std::string rank;
  while ((rank = read_file(locks.folder.file("rank"))).empty()) usleep(1000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(elsewhere(locks.path, 1, {9}));
  kill(std::stoi(rank), SIGKILL);
  bool all = false;
  for (int tries = 0; tries < 3000 && !all; ++tries, usleep(10000))  // the system takes a moment
    all = CoreLease(kFour, 4, locks.path).cores() == kFour;
  CHECK(all);
}

TEST_CASE("processes that start at the same moment get different cores, none of them too few") {
  const Locks locks;
  Cores many;
  for (int core = 0; core < 24; ++core) many.push_back(core);
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(fork());
    if (children.back() > 0) continue;
    const CoreLease lease(many, 3, locks.path);
    const std::string mine = "got-" + std::to_string(i);
    locks.folder.write(mine + ".part",
                       lease.cores().empty() ? "none" : std::to_string(lease.cores()[0]) + " ");
    rename(locks.folder.file(mine + ".part").c_str(), locks.folder.file(mine).c_str());
    while (true) pause();
  }
  std::vector<std::string> got;
  for (int i = 0; i < 8; ++i) {
    std::string text;
    for (int tries = 0; tries < 3000 && text.empty(); ++tries, usleep(10000))
      text = read_file(locks.folder.file("got-" + std::to_string(i)));
    got.push_back(text);
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  std::ranges::sort(got);
  CHECK(std::ranges::adjacent_find(got) == got.end());
  CHECK(std::ranges::find(got, "none") == got.end());
}

TEST_CASE("where a core cannot be locked, the cores are the first ones") {
  const Locks locks;
  const CoreLease lease(Cores{-9, 3, 4}, 2, locks.path);  // no byte of a file has such a number
  CHECK(lease.cores() == Cores{-9, 3});
  CHECK(lease.taken() == 0);
}

TEST_CASE("without a directory for locks the cores are the first ones, and nothing is refused") {
  const Locks locks;
  std::filesystem::create_directory(locks.path);
  REQUIRE(chmod(locks.path.c_str(), 0777) == 0);  // somebody else's, or open to all
  const CoreLease one(kFour, 2, locks.path), two(kFour, 2, locks.path);
  CHECK(one.cores() == Cores{1, 3});
  CHECK(two.cores() == Cores{1, 3});
  CHECK(two.taken() == 0);
  CHECK(CoreLease(kFour, 5, locks.path).cores().empty());
  locks.folder.write("file", "");
  CHECK(CoreLease(kFour, 1, locks.folder.file("file")).cores() == Cores{1});
}

}  // namespace
}  // namespace dpt

#endif
