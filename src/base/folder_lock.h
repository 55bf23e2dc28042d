// A folder that one run at a time writes to.
#pragma once

#include <functional>
#include <string>

#include <sys/file.h>

#include "base/error.h"

namespace dpt {

// Another run has the folder.
class FolderLocked : public Error {
 public:
  FolderLocked(const std::string& message, std::string who)
      : Error(Fault::failed, message), who_(std::move(who)) {}
  const std::string& who() const { return who_; }  // "process 811 on node7"

 private:
  std::string who_;
};

// While one lives, or a process that was forked meanwhile, nobody else gets one of this folder; the
// system ends it with the last of them, however they end. Where a file system has no such locks
// (some that lie on other machines), everybody gets one, with a warning.
class FolderLock {
 public:
  // Throws FolderLocked where somebody has it, Error{failed} where its file can't be made.
  // patience_s: for ranks of a run that was killed, which end a moment later; the default is for
  // is_locked().
  // lock: flock(2), or what a test has for it.
  // REQUIRES: the folder is there.
  explicit FolderLock(const std::string& folder, double patience_s = 0.02,
                      const std::function<int(int, int)>& lock = flock);
  FolderLock(FolderLock&& other) noexcept;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool exclusive() const { return exclusive_; }  // false: the file system has no locks

 private:
  int fd_ = -1;  // of a file in it, which stays: removed, it could be locked twice
  bool exclusive_ = true;
};

// Whether a FolderLock of this folder exists, in any process. Changes nothing in the folder. Holds
// the lock for an instant while it looks, which FolderLock waits out. False where that can't be
// seen: no lock file, no permission to read it, or a file system without locks.
bool is_locked(const std::string& folder);

}  // namespace dpt
