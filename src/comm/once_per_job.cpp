#include "comm/once_per_job.h"

#include <cerrno>
#include <functional>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"

namespace dpt {

OncePerJob::OncePerJob(std::string_view job, std::string_view what,
                       const std::filesystem::path& directory) {
  try {
    const std::filesystem::path file = private_directory(socket_directories(directory)) / "said";
    file_ = Descriptor(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  } catch (const Error&) {
  }
  if (!file_) return;
  constexpr size_t kBytes = size_t{1} << 40;  // that a file may have on any file system
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(
      std::hash<std::string>()(std::string(job) + '\0' + std::string(what)) % kBytes);
  lock.l_len = 1;
  // A lock of the open file, not of the process, which other code may open and close, too.
  if (fcntl(file_.get(), F_OFD_SETLK, &lock) != 0) speaks_ = errno != EAGAIN && errno != EACCES;
}

}  // namespace dpt
