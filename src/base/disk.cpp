#include "base/disk.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files.h"

namespace dpt {
namespace {

constexpr std::string_view kAside = ".aside-";

// "runs/x/step-1" becomes "runs/x/.aside-step-1".
std::string aside(const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // npos + 1 is 0
  return path.substr(0, name) + std::string(kAside) + path.substr(name);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

// An open descriptor, closed on every path. The result of close() is ignored: a successful sync()
// already means that the data is on the disk. `path` is the name that error messages show.
class Open {
 public:
  Open(Disk& disk, int fd, std::string path) : disk_(disk), fd_(fd), path_(std::move(path)) {
    if (fd < 0) fail_writing(path_);
  }
  ~Open() { disk_.close(fd_); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = disk_.write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) errno = ENOSPC;
      if (n <= 0) fail_writing(path_);
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  void sync() {
    if (disk_.sync(fd_) != 0) fail_writing(path_);
  }

 private:
  Disk& disk_;
  int fd_;
  std::string path_;
};

void sync_folder(Disk& disk, const std::string& path) {
  Open(disk, disk.open_folder(path), path).sync();
}

}  // namespace

int Disk::make_folder(const std::string& path) { return ::mkdir(path.c_str(), 0777); }
int Disk::create(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}
int Disk::open_folder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
ssize_t Disk::write(int fd, const std::byte* bytes, size_t count) {
  return ::write(fd, bytes, count);
}
int Disk::sync(int fd) { return ::fsync(fd); }
int Disk::close(int fd) { return ::close(fd); }
int Disk::rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str());
}
int Disk::remove(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  errno = error.value();
  return error ? -1 : 0;
}

int64_t Disk::free_bytes(const std::string& folder) {
  struct statvfs fs {};
  if (::statvfs(folder.c_str(), &fs) != 0 || fs.f_blocks == 0) return -1;
  return static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize);
}

int Disk::reserve(const std::string& folder, int64_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(bytes))
    return errno = EFBIG, -1;
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  if (bytes <= 0 || ::fallocate(fd, 0, 0, bytes) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

int make_folders(Disk& disk, const std::string& path) {
  std::string above = folder_of(path);
  while (above.size() > 1 && above.ends_with('/')) above.pop_back();
  if (disk.make_folder(path) != 0) {
    if (errno == EEXIST) return 0;
    if (errno != ENOENT || make_folders(disk, above) != 0 || disk.make_folder(path) != 0) return -1;
  }
  const int fd = disk.open_folder(above);
  if (fd < 0) return -1;
  const int synced = disk.sync(fd);
  disk.close(fd);
  return synced;
}

ReservedSpace::ReservedSpace(Disk& disk, const std::string& path, int64_t bytes)
    : disk_(disk), fd_(disk.reserve(folder_of(path), bytes)) {
  if (fd_ < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) fail_writing(path);
}

ReservedSpace::~ReservedSpace() {
  if (fd_ >= 0) disk_.close(fd_);
}

void ReservedSpace::release() noexcept {
  // Other ranks share the file through inherited descriptors, so closing ours would not free the
  // disk space. If truncating fails, the space stays reserved until the last process ends.
  if (fd_ >= 0 && ::ftruncate(fd_, 0) != 0) errno = 0;
}

namespace {

using FileCheck = std::function<void(const std::string&)>;

void replace_file(Disk& disk, const std::string& path, std::span<const BytesToWrite> parts,
                  const FileCheck& check) {
  // The process id keeps two processes that write the same path apart: exports take no lock.
  const std::string made = fmt::format("{}.{}", aside(path), ::getpid());
  try {
    if (disk.remove(made) != 0) fail_writing(path);
    Open file(disk, disk.create(made), path);
    for (const BytesToWrite& part : parts) part.pass([&](auto bytes) { file.write(bytes); });
    file.sync();
    if (check) check(made);
    if (disk.rename(made, path) != 0) fail_writing(path);
  } catch (...) {
    disk.remove(made);
    throw;
  }
  sync_names(disk, folder_of(path));
}

}  // namespace

void write_file(Disk& disk, const std::string& path, std::span<const BytesToWrite> parts) {
  replace_file(disk, path, parts, {});
}

void sync_names(Disk& disk, const std::string& folder) noexcept {
  const int fd = disk.open_folder(folder);
  if (fd < 0) return;
  disk.sync(fd);
  disk.close(fd);
}

void write_file(Disk& disk, const std::string& path, std::string_view text) {
  write_file(disk, path, text, {});
}

void write_file(Disk& disk, const std::string& path, std::string_view text,
                const FileCheck& check) {
  const BytesToWrite bytes(std::as_bytes(std::span(text)));
  replace_file(disk, path, {&bytes, 1}, check);
}

void write_folder(Disk& disk, const std::string& path, std::span<const FileContent> files) {
  const std::string made = aside(path);
  try {
    if (disk.remove(made) != 0 || disk.make_folder(made) != 0) fail_writing(path);
    std::vector<std::unique_ptr<Open>> open;
    for (const FileContent& file : files)
      open.push_back(std::make_unique<Open>(disk, disk.create(made + "/" + file.name),
                                            path + "/" + file.name));
    // Each thread syncs its own file: syncs one after another cost one disk commit each (ext4: 22
    // ms for five files, against 2 ms in parallel).
    std::vector<std::future<void>> written;
    for (size_t i = 0; i < files.size(); ++i)
      written.push_back(start_beside([&out = *open[i], &file = files[i]] {
        for (const BytesToWrite& part : file.parts)
          part.pass([&](auto bytes) { out.write(bytes); });
        out.sync();
      }));
    sync_folder(disk, made);
    for (auto& w : written) w.get();
    open.clear();
    if (disk.rename(made, path) != 0) fail_writing(path);
  } catch (...) {
    disk.remove(made);
    throw;
  }
  sync_folder(disk, folder_of(path));
}

bool remove_folder(Disk& disk, const std::string& path) {
  const std::string gone = aside(path);
  return disk.remove(gone) == 0 && disk.rename(path, gone) == 0 && disk.remove(gone) == 0;
}

bool is_aside(const std::string& name) { return name.starts_with(kAside); }

void remove_asides(Disk& disk, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> left;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is_aside(at->path().filename().string())) left.push_back(at->path().string());
  for (const std::string& path : left) disk.remove(path);
}

std::future<void> start_beside(std::function<void()> work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    std::future<void> done = std::async(std::launch::deferred, std::move(work));
    done.wait();
    return done;
  }
}

}  // namespace dpt
