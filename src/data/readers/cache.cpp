#include "data/readers/cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/sha256.h"
#include "base/units.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWorthwhile = kMiB;  // inflating less is fast enough

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread calls setenv
  return value != nullptr ? value : "";
}

// A checksum against damage, not malice: whoever can write to the user's cache could as well change
// the data. It runs at memory speed, because every start checks the whole copy.
uint64_t mix(std::span<const std::byte> bytes, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::array<uint64_t, 4> lane = {seed, seed + 1, seed + 2, seed + 3};
  size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32)
    for (size_t k = 0; k < 4; ++k) {
      uint64_t word = 0;
      std::memcpy(&word, &bytes[i + 8 * k], 8);
      lane[k] = std::rotl((lane[k] ^ word) * kOdd, 29);
    }
  for (; i < bytes.size(); ++i)
    lane[0] = std::rotl((lane[0] ^ std::to_integer<uint64_t>(bytes[i])) * kOdd, 29);
  uint64_t all = bytes.size();
  for (const uint64_t l : lane) all = std::rotl((all ^ l) * kOdd, 29);
  return all;
}

// The header in front of the decompressed bytes.
struct Front {
  std::array<char, 16> magic{'d', 'p', 't', 'r', 'a', 'i', 'n', ' ',
                             'c', 'a', 'c', 'h', 'e', ' ', '1', '\n'};
  uint64_t size = 0, changed_ns = 0, inode = 0, gzip_tail = 0;  // of the gzip file
  uint64_t bytes = 0, checksum = 0;                             // of the bytes that follow
  bool operator==(const Front&) const = default;
};

class Handle {
 public:
  Handle(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~Handle() {
    if (fd_ >= 0) ::close(fd_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  explicit operator bool() const { return fd_ >= 0; }

  bool read(std::span<std::byte> out, uint64_t offset) const {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (n <= 0) return false;
      out = out.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return true;
  }
  bool write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return true;
  }
  struct stat status() const {
    struct stat s {};
    if (::fstat(fd_, &s) != 0) s.st_size = -1;
    return s;
  }

 private:
  int fd_;
};

class CachedSource final : public ByteSource {
 public:
  CachedSource(std::unique_ptr<Handle> file, const Front& front)
      : file_(std::move(file)), front_(front) {}

  void read(std::span<std::byte> out, const std::string& what) override {
    if (out.size() > front_.bytes - offset_ || !file_->read(out, sizeof(Front) + offset_))
      fail(Fault::data, "the cached copy does not hold {}", what);
    offset_ += out.size();
    checksum_ = mix(out, checksum_);
  }
  void expect_end() override {
    if (offset_ != front_.bytes || checksum_ != front_.checksum)
      fail(Fault::data, "the cached copy is damaged");
  }
  uint64_t most_bytes() const override { return front_.bytes; }
  bool compressed() const override { return false; }

 private:
  std::unique_ptr<Handle> file_;
  Front front_;
  uint64_t offset_ = 0, checksum_ = 0;
};

}  // namespace

std::string cache_folder() {
  if (const std::string given = environment("XDG_CACHE_HOME"); given.starts_with('/'))
    return given + "/dptrain";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/dptrain";
}

std::optional<CacheEntry> cache_entry(const std::string& path) {
  const std::string folder = cache_folder();
  if (folder.empty() || !environment("DPTRAIN_NO_CACHE").empty()) return {};
  std::error_code none;
  const std::string real = fs::canonical(path, none).string();
  const Handle file(path, O_RDONLY | O_NONBLOCK);
  if (none || !file) return {};
  const struct stat s = file.status();
  if (s.st_size < 18) return {};  // smaller than any gzip file
  CacheEntry entry;
  entry.path_ = fmt::format("{}/inflated/{}-{}", folder, Sha256().update(real).hex().substr(0, 16),
                            fs::path(real).stem().string());
  entry.key_.size = static_cast<uint64_t>(s.st_size);
  entry.key_.changed_ns = static_cast<uint64_t>(s.st_mtim.tv_sec) * 1000000000 +
                          static_cast<uint64_t>(s.st_mtim.tv_nsec);
  entry.key_.inode = s.st_ino;
  std::array<std::byte, 8> tail{};
  if (!file.read(tail, entry.key_.size - 8)) return {};
  entry.key_.gzip_tail = std::bit_cast<uint64_t>(tail);
  return entry;
}

std::unique_ptr<ByteSource> CacheEntry::open() const {
  auto file = std::make_unique<Handle>(path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  Front front;
  if (!*file || !file->read(std::as_writable_bytes(std::span(&front, 1)), 0)) return nullptr;
  const Front expected{.size = key_.size,
                       .changed_ns = key_.changed_ns,
                       .inode = key_.inode,
                       .gzip_tail = key_.gzip_tail,
                       .bytes = front.bytes,
                       .checksum = front.checksum};
  const struct stat s = file->status();
  const bool ours = s.st_uid == ::geteuid() && s.st_size >= 0 &&
                    static_cast<uint64_t>(s.st_size) == sizeof(Front) + front.bytes;
  if (front != expected || !ours) return nullptr;
  return std::make_unique<CachedSource>(std::move(file), front);
}

void CacheEntry::store(std::initializer_list<std::span<const std::byte>> pieces) const {
  Front front{.size = key_.size,
              .changed_ns = key_.changed_ns,
              .inode = key_.inode,
              .gzip_tail = key_.gzip_tail};
  for (const auto& piece : pieces) {
    front.bytes += piece.size();
    front.checksum = mix(piece, front.checksum);
  }
  if (front.bytes < kWorthwhile) return;
  std::error_code ignored;
  fs::create_directories(fs::path(path_).parent_path(), ignored);
  const std::string aside = fmt::format("{}.{}.new", path_, ::getpid());
  bool written = false;
  {
    const Handle file(aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (!file) return;
    written = file.write(std::as_bytes(std::span(&front, 1))) &&
              std::ranges::all_of(pieces, [&](const auto& piece) { return file.write(piece); });
  }
  if (!written || ::rename(aside.c_str(), path_.c_str()) != 0) ::unlink(aside.c_str());
}

}  // namespace dpt
