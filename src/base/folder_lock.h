// A folder that one run at a time writes to.
#pragma once

#include <functional>
#include <string>

#include <sys/file.h>

namespace dpt {

// While one lives, or a process that was forked meanwhile, nobody else gets one of this folder; the
// system ends it with the last of them, however they end. Where a file system has no such locks
// (some that lie on other machines), everybody gets one, with a warning.
class FolderLock {
 public:
  // Throws Error{failed} where somebody has it, with who that is. patience_s: for ranks of a run
  // that was killed, which end a moment later.
  // lock: flock(2), or what a test has for it.
  // REQUIRES: the folder is there.
  explicit FolderLock(const std::string& folder, double patience_s = 0,
                      const std::function<int(int, int)>& lock = flock);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool exclusive() const { return exclusive_; }  // false: the file system has no locks

 private:
  int fd_ = -1;  // of a file in it, which stays: removed, it could be locked twice
  bool exclusive_ = true;
};

}  // namespace dpt
