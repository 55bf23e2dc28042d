// Files and folders that outlive a crash: there whole or not there. All calls that change the disk
// go through a Disk, so that a test can let each of them fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace dpt {

// As the system's calls of these names: -1 and errno where one fails. Thread: any, several at once.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual int make_folder(const std::string& path);
  virtual int create(const std::string& path);       // a new file, for writing
  virtual int open_folder(const std::string& path);  // to be synced
  virtual ssize_t write(int fd, const std::byte* bytes, size_t count);
  virtual int sync(int fd);
  virtual int close(int fd);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int remove(const std::string& path);  // with all that is in it; one that is not there is
                                                // no error
  // Bytes that the folder's file system has room for; -1: that can't be known.
  virtual int64_t free_bytes(const std::string& folder);
  // A file without a name in this folder, with so many bytes of the disk: its descriptor. The
  // system removes it with the last process that has it. EFBIG: files may not be so large.
  virtual int reserve(const std::string& folder, int64_t bytes);
};

// Room on a disk for a file that is written later. Processes that are forked share it.
class ReservedRoom {
 public:
  // Throws as fail_writing(path) where there is no room, or none for a file so large. Where the
  // file system cannot reserve (NFS), nothing is reserved.
  ReservedRoom(Disk& disk, const std::string& path, int64_t bytes);
  ~ReservedRoom();
  ReservedRoom(const ReservedRoom&) = delete;
  ReservedRoom& operator=(const ReservedRoom&) = delete;
  void release() noexcept;  // for all of them: the file is written now

 private:
  Disk& disk_;
  int fd_;
};

// As mkdir -p, each folder synced into the one above, so that they outlive a crash.
// REQUIRES: no '/' at its end.
int make_folders(Disk& disk, const std::string& path);

// Replaces the file PATH, or makes it: written aside, synced and renamed, so that PATH holds the
// old file or the new one, never half of one. A link of that name is replaced, not followed. Throws
// as fail_writing(), with nothing left behind.
void write_file(Disk& disk, const std::string& path,
                std::span<const std::span<const std::byte>> parts);
void write_file(Disk& disk, const std::string& path, std::string_view text);

struct FileContent {
  std::string name;
  std::vector<std::span<const std::byte>> parts;  // one after another
};

// Makes the folder PATH with these files. It is written aside, synced and renamed, and the folder
// above synced: when this returns, it is there after any crash; until then it is there whole or not
// at all. Throws as fail_writing(), with nothing left behind; whatever else is there stays as it
// is. REQUIRES: the folder above is there, PATH is not.
void write_folder(Disk& disk, const std::string& path, std::span<const FileContent> files);

// Removes the folder; at no time it has its name and lacks files. Whether it is gone.
bool remove_folder(Disk& disk, const std::string& path);

// Temporary names that these functions use while they write or remove; a crash may leave such.
bool is_aside(const std::string& name);

// Removes what a crash has left in the folder under such names. REQUIRES: nobody else writes there.
void remove_asides(Disk& disk, const std::string& folder);

// Starts the work on a thread of its own; where the system gives none, it is done when this
// returns. What it throws is kept for get().
std::future<void> start_beside(std::function<void()> work);

}  // namespace dpt
