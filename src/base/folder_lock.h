// A lock on a folder, so that only one run at a time writes to it.
#pragma once

#include <functional>
#include <string>

#include <sys/file.h>

#include "base/error.h"

namespace dpt {

// Another run holds the folder's lock.
class FolderLocked : public Error {
 public:
  FolderLocked(const std::string& message, std::string holder)
      : Error(Fault::failed, message), holder_(std::move(holder)) {}
  const std::string& holder() const { return holder_; }  // "process 811 on node7"

 private:
  std::string holder_;
};

// An exclusive lock on a folder, held until this object and those inherited by forked processes are
// gone, however the processes end. On file systems without locks (some network file systems)
// everybody gets one, and a warning is printed.
class FolderLock {
 public:
  // Throws FolderLocked if another process holds the lock, and Error{failed} if the lock file
  // cannot be created.
  // patience_s: how long to retry, in seconds. Ranks of a killed run may hold the lock a moment
  // longer. The default outlasts the instant for which is_locked() takes the lock.
  // lock: flock(2), or a test's replacement.
  // REQUIRES: the folder exists.
  explicit FolderLock(const std::string& folder, double patience_s = 0.02,
                      const std::function<int(int, int)>& lock = flock);
  FolderLock(FolderLock&& other) noexcept;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool exclusive() const { return exclusive_; }  // false: the file system has no locks

 private:
  // Of FOLDER/.lock. If that file were ever removed, two processes could lock different files.
  int fd_ = -1;
  bool exclusive_ = true;
};

// Whether any process holds a FolderLock on the folder. Does not change the folder, but takes the
// lock for an instant. Returns false if that cannot be determined: no lock file, no read
// permission, or a file system without locks.
bool is_locked(const std::string& folder);

}  // namespace dpt
