#include "comm/shared_memory.h"

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/machine.h"
#include "base/units.h"

namespace dpt {
namespace {

std::string words_of(int error) { return std::generic_category().message(error); }

std::string in_words(size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMiB);
}

constexpr const char* kAdvice =
    "use a smaller model or batch, fewer shards or devices, or a machine with more memory";

void check_fits_machine(size_t bytes) {
  require(bytes > 0, "a shared mapping has at least one byte");
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const size_t physical = static_cast<size_t>(pages) * static_cast<size_t>(page);
  if (pages > 0 && page > 0 && bytes > physical)
    fail(Fault::memory,
         "weights, gradients and optimizer states need {}, but this machine has {}; {}",
         in_words(bytes), in_words(physical), kAdvice);
}

// Maps `bytes` at a 2 MiB boundary: reserves 2 MiB more than needed, then unmaps the rest.
std::byte* map_aligned(size_t bytes, int flags, int fd) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t length = (bytes + page - 1) / page * page, reserved = length + kHugePage;
  void* const space = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (space == MAP_FAILED) return nullptr;
  std::byte* const start = static_cast<std::byte*>(space);
  const uintptr_t address = reinterpret_cast<uintptr_t>(space);
  const size_t before = (kHugePage - address % kHugePage) % kHugePage;
  std::byte* const at = start + before;
  if (mmap(at, length, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
    const int error = errno;
    munmap(space, reserved);
    errno = error;
    return nullptr;
  }
  if (before > 0) munmap(start, before);
  munmap(at + length, reserved - before - length);
  prefer_huge_pages(at, length);
  return at;
}

void fill_in(std::byte* data, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (madvise(data, (bytes + page - 1) / page * page, MADV_POPULATE_WRITE) == 0) return;
  if (errno == ENOMEM || errno == EFAULT)
    fail(Fault::memory, "cannot get {} of memory: {}; {}", in_words(bytes), words_of(errno),
         kAdvice);
#endif
  for (size_t i = 0; i < bytes; i += kPage) data[i] = std::byte{0};  // before Linux 5.14
}

}  // namespace

SharedMemory SharedMemory::create(size_t bytes, Pages pages) {
  check_fits_machine(bytes);
  const int fd = memfd_create("dptrain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) fail(Fault::memory, "cannot create shared memory: {}", words_of(errno));
  SharedMemory memory(nullptr, bytes, fd);  // owns fd from here on
  // Seals prevent any process from shrinking the file, which would kill the others with SIGBUS.
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 ||
      (memory.data_ = map_aligned(bytes, MAP_SHARED, fd)) == nullptr) {
    if (errno == EFBIG)
      fail(Fault::memory,
           "ranks share {} of memory, which counts as a file and exceeds the limit on file size; "
           "raise the limit (ulimit -f)",
           in_words(bytes));
    fail(Fault::memory, "cannot get {} of shared memory: {}; {}", in_words(bytes), words_of(errno),
         kAdvice);
  }
  if (pages == Pages::now) fill_in(memory.data_, bytes);
  return memory;
}

SharedMemory SharedMemory::create_private(size_t bytes, Pages pages) {
  check_fits_machine(bytes);
  std::byte* const data = map_aligned(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (data == nullptr)
    fail(Fault::memory, "cannot get {} of memory: {}; {}", in_words(bytes), words_of(errno),
         kAdvice);
  SharedMemory memory(data, bytes, -1);
  if (pages == Pages::now) fill_in(data, bytes);
  return memory;
}

SharedMemory SharedMemory::adopt(int fd, size_t bytes) {
  SharedMemory memory(nullptr, bytes, fd);
  struct stat info {};
  if (bytes == 0 || fstat(fd, &info) != 0 || static_cast<size_t>(info.st_size) < bytes)
    fail(Fault::rank, "the shared memory that rank 0 handed over has {} bytes, not {}",
         info.st_size, bytes);
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    fail(Fault::rank, "the shared memory that rank 0 handed over is not sealed against shrinking");
  memory.data_ = map_aligned(bytes, MAP_SHARED, fd);
  if (memory.data_ == nullptr)
    fail(Fault::memory, "cannot map {} of shared memory: {}; {}", in_words(bytes), words_of(errno),
         kAdvice);
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);  // munmap() rounds up to whole pages
  if (fd_ >= 0) close(fd_);
}

}  // namespace dpt
