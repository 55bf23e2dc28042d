#include "formats/random_access_file.h"

#include <cerrno>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/files.h"

namespace dpt {
namespace {

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

RandomAccessFile::RandomAccessFile(const std::string& path)
    : path_(path), fd_(open_regular_file(path)) {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) {
    const std::string why = reason();
    ::close(fd_);
    fail(Fault::data, "{} cannot be read: {}", path, why);
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

RandomAccessFile::~RandomAccessFile() { ::close(fd_); }

// pread(), not mmap(): if the file shrinks while mapped, reading it kills the process (SIGBUS).
void RandomAccessFile::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      fail(Fault::data, "{} cannot be read at offset {}: {}", path_, offset,
           n < 0 ? reason() : "it ends");
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

}  // namespace dpt
