#include "base/folder_lock.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/stderr.h"

namespace dpt {
namespace {

constexpr double kTry = 0.01;  // seconds

std::string text_in(int fd) {
  std::array<char, 200> text{};
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  return {text.data(), n > 0 ? static_cast<size_t>(n) : 0};
}

// Who holds the lock, as the holder wrote it. It writes right after taking the lock, so an empty
// file is read again for up to 0.2 seconds.
std::string holder_in(int fd) {
  std::string out = text_in(fd);
  for (int tries = 0; out.empty() && tries < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kTry));
    out = text_in(fd);
  }
  return out.empty() ? "a process that is just starting" : out;
}

std::string this_process() {
  std::array<char, 100> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", getpid(), host.data());
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, double patience_s,
                       const std::function<int(int, int)>& lock) {
  const std::string path = folder + "/.lock";
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0)
    fail(Fault::failed, "{} cannot be written: {}; choose another folder with out=DIR", path,
         std::generic_category().message(errno));
  int error = 0;
  const auto taken = [&] {
    do error = lock(fd_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    while (error == EINTR);
    return error == EWOULDBLOCK;
  };
  bool refused = taken();
  for (double waited = 0; refused && waited < patience_s; waited += kTry, refused = taken())
    std::this_thread::sleep_for(std::chrono::duration<double>(kTry));
  exclusive_ = error == 0;
  if (!exclusive_ && !refused)
    print_stderr("{} cannot be locked: {}; make sure that no other run writes to this folder\n",
                 folder, std::generic_category().message(error));
  if (refused) {
    const std::string holder = holder_in(fd_);
    close(fd_);
    throw FolderLocked(fmt::format("another run is writing to {} ({}); wait for it to end, or "
                                   "choose another folder with out=DIR",
                                   folder, holder),
                       holder);
  }
  const std::string me = this_process();
  if (ftruncate(fd_, 0) == 0 && pwrite(fd_, me.data(), me.size(), 0) < 0)
    errno = 0;  // the text only serves other runs' error messages
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), exclusive_(other.exclusive_) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

bool is_locked(const std::string& folder) {
  const int fd = open((folder + "/.lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return locked;
}

}  // namespace dpt
