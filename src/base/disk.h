// Folders of files that outlive a crash: there whole or not there. All calls that change the disk
// go through a Disk, so that a test can let each of them fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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
};

// As mkdir -p, each folder synced into the one above, so that they outlive a crash.
// REQUIRES: no '/' at its end.
int make_folders(Disk& disk, const std::string& path);

struct FileContent {
  std::string name;
  std::vector<std::span<const std::byte>> parts;  // one after another
};

// Makes the folder PATH with these files. It is written aside, synced and renamed, and the folder
// above synced: when this returns, it is there after any crash; until then it is there whole or not
// at all. Throws Error{failed}, or std::system_error where there is no thread, with nothing left
// behind; whatever else is there stays as it is.
// REQUIRES: the folder above is there, PATH is not.
void write_folder(Disk& disk, const std::string& path, std::span<const FileContent> files);

// Removes the folder; at no time it has its name and lacks files. Whether it is gone.
bool remove_folder(Disk& disk, const std::string& path);

// The names that the two use for what has not its name yet or no more; a crash may leave such.
bool is_aside(const std::string& name);

}  // namespace dpt
