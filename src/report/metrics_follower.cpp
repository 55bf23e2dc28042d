#include "report/metrics_follower.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace dpt {

void MetricsFollower::read(const std::function<void(std::string_view line)>& line,
                           const std::function<void()>& again) {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat now {};
  if (!file || ::fstat(file.get(), &now) != 0 || !S_ISREG(now.st_mode)) return;
  if (now.st_ino != id_ || now.st_size < bytes_) {
    if (id_ != 0) again();
    id_ = now.st_ino;
    bytes_ = 0;
    pending_.clear();
  }
  std::array<char, 1 << 14> block;
  while (true) {
    const ssize_t n = ::pread(file.get(), block.data(), block.size(), bytes_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes_ += n;
    pending_.append(block.data(), static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end = pending_.find('\n'); end != pending_.npos; end = pending_.find('\n', begin)) {
      line(std::string_view(pending_).substr(begin, end - begin));
      begin = end + 1;
    }
    pending_.erase(0, begin);
  }
}

}  // namespace dpt
