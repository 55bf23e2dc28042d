#include "comm/core_lease.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "base/error.h"

namespace dpt {
namespace {

// A byte beyond all cores. A process holds it while it chooses: otherwise two processes that start
// at the same time could each take some cores and both find too few.
constexpr int kChoosing = CPU_SETSIZE;

enum class Lock { taken, held_by_another, impossible };

// Sets an open file description lock. Forked ranks share it, and it ends with the last of them.
Lock set(int fd, int byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return Lock::taken;
  return errno == EAGAIN || errno == EACCES ? Lock::held_by_another : Lock::impossible;
}

// Waits at most 100 ms, so that a process that was stopped while choosing does not block others.
void wait_to_choose(int fd) {
  for (int tries = 0; tries < 100 && set(fd, kChoosing, F_WRLCK) == Lock::held_by_another; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Descriptor open_locks(const std::filesystem::path& directory) {
  try {
    const std::filesystem::path file = private_directory(socket_directories(directory)) / "cores";
    return Descriptor(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

CoreLease::CoreLease(std::span<const int> candidates, size_t wanted,
                     const std::filesystem::path& directory)
    : file_(open_locks(directory)) {
  if (file_) wait_to_choose(file_.get());
  if (!file_ || !choose(candidates, wanted)) {
    const size_t count = wanted <= candidates.size() ? wanted : 0;
    cores_.assign(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count));
    taken_ = 0;
  }
  if (file_) set(file_.get(), kChoosing, F_UNLCK);
}

// Returns false if locks are impossible here.
bool CoreLease::choose(std::span<const int> candidates, size_t wanted) {
  for (const int core : candidates) {
    if (cores_.size() == wanted) break;
    const Lock lock = set(file_.get(), core, F_WRLCK);
    if (lock == Lock::impossible) return false;
    if (lock == Lock::taken) cores_.push_back(core);
    if (lock == Lock::held_by_another) ++taken_;
  }
  if (cores_.size() == wanted) return true;
  for (const int core : cores_) set(file_.get(), core, F_UNLCK);
  cores_.clear();
  return true;
}

}  // namespace dpt
