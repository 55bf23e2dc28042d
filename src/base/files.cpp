#include "base/files.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/fail.h"

namespace dpt {
namespace {

std::string reason() { return std::generic_category().message(errno); }

std::string_view kind_of(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return "a folder";
  if (S_ISFIFO(status.st_mode)) return "a pipe";
  if (S_ISSOCK(status.st_mode)) return "a socket";
  return "a device";
}

std::string_view write_remedy(int error) {
  switch (error) {
    case ENOSPC:
      return "free some disk space";
    case EDQUOT:
      return "free some space in your quota";
    case EFBIG:
      return "raise the limit on the size of files (ulimit -f)";
    case EACCES:
    case EPERM:
      return "get write permission, or choose another folder";
    case EROFS:
      return "choose a folder on another disk: this one is read-only";
    case EMFILE:
      return "raise the limit on open files (ulimit -n)";
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
      return "create its folder first";
    default:
      return "check the disk, or choose another folder";
  }
}

// Reads to the end of the file, or until `out` exceeds `most_bytes`. Returns false and errno if
// reading fails.
bool read_all(int fd, size_t most_bytes, std::string& out) {
  for (char block[1 << 14]; out.size() <= most_bytes;) {
    const ssize_t n = ::read(fd, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    out.append(block, static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

int open_regular_file(const std::string& path, Fault fault) {
  // O_NONBLOCK: opening a FIFO would wait for its writer. Regular files ignore the flag.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) {
    const std::string why = reason();
    if (fd >= 0) ::close(fd);
    fail(fault, "{} cannot be opened: {}", path, why);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    fail(fault, "{} is {}, not a regular file", path, kind_of(status));
  }
  return fd;
}

std::string read_file(const std::string& path, size_t most_bytes, Fault fault) {
  const Descriptor file(open_regular_file(path, fault));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(fault, "{} cannot be read: {}", path, reason());
  const auto refuse = [&](uint64_t bytes) {
    fail(fault, "{} has {} bytes; at most {} are read from a file of this kind", path, bytes,
         most_bytes);
  };
  if (static_cast<uint64_t>(status.st_size) > most_bytes)
    refuse(static_cast<uint64_t>(status.st_size));
  std::string out;
  if (!read_all(file.get(), most_bytes, out)) fail(fault, "{} cannot be read: {}", path, reason());
  if (out.size() > most_bytes) refuse(out.size());
  return out;
}

std::string read_stream(const std::string& path, size_t most_bytes, Fault fault) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    fail(fault, "{} cannot be opened: {}", path, reason());
  if (S_ISDIR(status.st_mode)) fail(fault, "{} is a folder, not a file", path);
  std::string out;
  if (!read_all(file.get(), most_bytes, out)) fail(fault, "{} cannot be read: {}", path, reason());
  if (out.size() > most_bytes) fail(fault, "{} has more than {} bytes", path, most_bytes);
  return out;
}

void fail_writing(const std::string& path) {
  const int error = errno;
  const std::string message =
      fmt::format("{} cannot be written: {}; {}", path, std::generic_category().message(error),
                  write_remedy(error));
  if (error == ENOSPC || error == EDQUOT) throw DiskFull(message);
  throw Error(Fault::failed, message);
}

void write_text(const std::string& path, std::string_view text, std::string_view remedy) {
  errno = 0;
  std::ofstream out(path, std::ios::trunc);
  if (out << text << std::flush) return;
  if (errno == 0) errno = EIO;
  if (remedy.empty()) fail_writing(path);
  fail(Fault::failed, "{} cannot be written: {}{}", path, reason(), remedy);
}

void make_folder(const std::string& path, std::string_view what) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    fail(Fault::failed, "{} {} cannot be created: {}; choose another with out=DIR", what, path,
         error.message());
}

}  // namespace dpt
