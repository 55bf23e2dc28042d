// Writing files and folders so that after a crash they are either complete or absent. Every call
// that changes the disk goes through a Disk, so that tests can make each one fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace dpt {

// System calls, replaceable in tests. Like the calls of the same names, functions that return int
// or ssize_t return -1 and set errno on failure. Thread: any, several at once.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual int make_folder(const std::string& path);
  virtual int create(const std::string& path);  // a new file, for writing; fails if the path exists
  virtual int open_folder(const std::string& path);  // for sync()
  virtual ssize_t write(int fd, const std::byte* bytes, size_t count);
  virtual int sync(int fd);
  virtual int close(int fd);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int remove(const std::string& path);  // recursively; succeeds if the path does not exist
  // Free bytes of the folder's file system; -1 if unknown.
  virtual int64_t free_bytes(const std::string& folder);
  // Creates an unnamed file in the folder with `bytes` of disk space allocated, and returns its
  // descriptor. The system frees the space when the last process closes it. EFBIG: the process's
  // file size limit (RLIMIT_FSIZE) is smaller.
  virtual int reserve(const std::string& folder, int64_t bytes);
};

// Syncs nothing: for files that need not survive a crash of the machine, since they are copies or
// are made again.
class UnsyncedDisk : public Disk {
 public:
  int sync(int) override { return 0; }
};

// Disk space reserved for a file that is written later. Forked processes share the reservation.
class ReservedSpace {
 public:
  // Reserves in the folder of `path`. Throws like fail_writing(path) if the disk or the quota is
  // full or the file size limit is too small. On file systems that cannot reserve (NFS), nothing is
  // reserved.
  ReservedSpace(Disk& disk, const std::string& path, int64_t bytes);
  ~ReservedSpace();
  ReservedSpace(const ReservedSpace&) = delete;
  ReservedSpace& operator=(const ReservedSpace&) = delete;
  void release() noexcept;  // frees it for all processes; call right before writing

 private:
  Disk& disk_;
  int fd_;
};

// Like mkdir -p; syncs each parent folder, so that the new folders survive a crash. Returns 0, or
// -1 and errno. REQUIRES: no '/' at the end of the path.
int make_folders(Disk& disk, const std::string& path);

// After it returns, the names of the files in the folder survive a crash, if the folder can be
// read.
void sync_names(Disk& disk, const std::string& folder) noexcept;

// Bytes to write: those in memory, or those that a function passes on, in order, in pieces that are
// read before `to` returns.
class BytesToWrite {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;
  BytesToWrite(std::span<const std::byte> bytes)  // NOLINT(google-explicit-constructor)
      : pass_([bytes](const Sink& to) { to(bytes); }) {}
  explicit BytesToWrite(std::function<void(const Sink&)> pass) : pass_(std::move(pass)) {}
  void pass(const Sink& to) const { pass_(to); }

 private:
  std::function<void(const Sink&)> pass_;
};

// Creates or replaces the file PATH: writes a temporary file, syncs it and renames it, so that PATH
// always holds the complete old or new content. A symbolic link at PATH is replaced, not followed.
// Throws like fail_writing() and then leaves nothing behind.
void write_file(Disk& disk, const std::string& path, std::span<const BytesToWrite> parts);
void write_file(Disk& disk, const std::string& path, std::string_view text);
// Calls `check` with the name of the complete temporary file, in the same folder. If `check`
// throws, PATH stays as it was.
void write_file(Disk& disk, const std::string& path, std::string_view text,
                const std::function<void(const std::string&)>& check);

struct FileContent {
  std::string name;
  std::vector<BytesToWrite> parts;  // written one after another
};

// Creates the folder PATH with these files. It is written under a temporary name, synced and
// renamed, and then the parent folder is synced: the folder survives any crash after this returns,
// and a crash before that leaves it complete or absent. Throws like fail_writing() and then leaves
// nothing behind. REQUIRES: the parent folder exists, PATH does not.
void write_folder(Disk& disk, const std::string& path, std::span<const FileContent> files);

// Removes the folder. It is renamed first, so PATH never names an incomplete folder. Returns
// whether everything was removed.
bool remove_folder(Disk& disk, const std::string& path);

// Whether a name is one of the temporary names above, which a crash may leave behind.
bool is_aside(const std::string& name);

// Removes what a crash left under temporary names. REQUIRES: no other process writes to the folder.
void remove_asides(Disk& disk, const std::string& folder);

// Runs the work on a new thread; if the system refuses one, on this thread before returning. An
// exception of the work is rethrown by get().
std::future<void> start_beside(std::function<void()> work);

}  // namespace dpt
