#include "data/readers/bytes.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/units.h"

namespace dpt {
namespace {

constexpr uint64_t kMostBytes = 4 * kGiB;  // of one decompressed file
constexpr uint64_t kMostRatio = 1032;      // deflate can't do more
// Each costs time, even if it holds nothing. bgzip makes 65536 of 4 GiB.
constexpr int kMostMembers = 1 << 18;

class File {
 public:
  explicit File(const std::string& path) : path_(path), fd_(open_regular_file(path)) {
    struct stat status {};
    if (::fstat(fd_, &status) == 0) size_ = static_cast<uint64_t>(status.st_size);
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Reads up to out.size() bytes from `offset` on. Returns how many; fewer only at the end.
  size_t read(std::span<std::byte> out, uint64_t offset) const {
    size_t got = 0;
    while (got < out.size()) {
      const ssize_t n =
          ::pread(fd_, out.data() + got, out.size() - got, static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) refuse("cannot be read");
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    fail(Fault::data, "{} {}: {}", path_, what, std::generic_category().message(errno));
  }
  std::string path_;
  int fd_;
  uint64_t size_ = 0;
};

bool begins_gzip(const File& file, uint64_t offset) {
  std::byte magic[2]{};
  return file.read(magic, offset) == 2 && magic[0] == std::byte{0x1f} &&
         magic[1] == std::byte{0x8b};
}

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(std::unique_ptr<File> file) : file_(std::move(file)) {}

  void read(std::span<std::byte> out, const std::string& what) override {
    const size_t got = file_->read(out, offset_);
    if (got < out.size())
      fail(Fault::data,
           "{} is cut short: {} needs {} bytes at offset {}, but only {} are left. Fetch the file "
           "again.",
           file_->path(), what, out.size(), offset_, got);
    offset_ += got;
  }
  void expect_end() override {
    if (offset_ != file_->size())
      fail(Fault::data,
           "{} has {} bytes more than its header declares, starting at offset {}. Fetch the file "
           "again.",
           file_->path(), file_->size() - offset_, offset_);
  }
  uint64_t most_bytes() const override { return file_->size(); }
  bool compressed() const override { return false; }

 private:
  std::unique_ptr<File> file_;
  uint64_t offset_ = 0;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<File> file) : file_(std::move(file)), in_(kChunk) {
    constexpr int kGzipOnly = 16;
    require(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, "zlib does not start");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  void read(std::span<std::byte> out, const std::string& what) override {
    size_t got = 0;
    while (got < out.size()) {
      const size_t n = inflate_some(out.subspan(got));
      if (n == 0 && done_)
        fail(Fault::data,
             "{} is cut short: {} needs {} decompressed bytes at offset {}, but only {} are left. "
             "Fetch the file again.",
             file_->path(), what, out.size(), offset_, got);
      got += n;
    }
    offset_ += got;
  }

  void expect_end() override {
    std::byte more[1];
    while (!done_)
      if (inflate_some(more) != 0)
        fail(Fault::data, "{} decompresses to more than the {} bytes that its header declares",
             file_->path(), offset_);
    const uint64_t rest = file_->size() - read_ + stream_.avail_in;
    if (rest != 0)
      fail(Fault::data, "{} has {} bytes after the end of its gzip data", file_->path(), rest);
  }
  uint64_t most_bytes() const override { return std::min(kMostBytes, file_->size() * kMostRatio); }
  bool compressed() const override { return true; }

 private:
  static constexpr size_t kChunk = 256 * kKiB;

  // Returns the number of bytes; 0 at the end (done_).
  size_t inflate_some(std::span<std::byte> out) {
    if (done_) return 0;
    if (stream_.avail_in == 0) {
      const size_t n = file_->read(in_, read_);
      if (n == 0)
        fail(Fault::data, "{} is cut short: its gzip data ends at offset {}. Fetch the file again.",
             file_->path(), read_);
      read_ += n;
      stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
      stream_.avail_in = static_cast<uInt>(n);
    }
    const auto available =
        static_cast<uInt>(std::min<size_t>(out.size(), std::numeric_limits<uInt>::max()));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = available;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
      done_ = !begin_member();
    else if (result != Z_OK && result != Z_BUF_ERROR)
      fail(Fault::data, "{} is damaged near offset {}: {}. Fetch the file again.", file_->path(),
           read_ - stream_.avail_in, stream_.msg != nullptr ? stream_.msg : "gzip data is wrong");
    return available - stream_.avail_out;
  }

  // Returns false if no further member follows.
  bool begin_member() {
    if (!begins_gzip(*file_, read_ - stream_.avail_in)) return false;
    if (++members_ > kMostMembers)
      fail(Fault::data, "{} has more than {} gzip members; compress it again, as one",
           file_->path(), kMostMembers);
    return inflateReset(&stream_) == Z_OK;
  }

  std::unique_ptr<File> file_;
  std::vector<std::byte> in_;
  z_stream stream_{};
  uint64_t read_ = 0;    // bytes of the file read so far
  uint64_t offset_ = 0;  // bytes decompressed so far
  int members_ = 1;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  auto file = std::make_unique<File>(path);
  if (begins_gzip(*file, 0)) return std::make_unique<GzipSource>(std::move(file));
  return std::make_unique<PlainSource>(std::move(file));
}

std::shared_ptr<std::byte[]> allocate_bytes(size_t bytes) {
  constexpr size_t kLarge = 16 * kMiB;  // below, asking costs more than it saves
  if (bytes >= kLarge)
    need_memory(bytes, "the data", "use fewer or smaller samples, or a machine with more memory");
  const std::align_val_t alignment{bytes >= kHugePage ? kHugePage : kTensorAlignment};
  auto* memory = static_cast<std::byte*>(::operator new[](std::max<size_t>(bytes, 1), alignment));
  prefer_huge_pages(memory, bytes);
  return {memory, [alignment](std::byte* p) { ::operator delete[](p, alignment); }};
}

}  // namespace dpt
