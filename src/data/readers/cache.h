// Decompressed copies of data files in the user's cache folder: inflating Fashion-MNIST takes
// longer than training an epoch on it. The cache is optional: missing, old, damaged or inaccessible
// copies are ignored silently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/readers/bytes.h"

namespace dpt {

// ${XDG_CACHE_HOME:-~/.cache}/dptrain; empty if neither variable is set.
std::string cache_folder();

// The cached copy of one file. It is named after the file's path and records the file's size,
// modification time, inode, gzip checksum and length, and a checksum of its own content. It is used
// only if all of them match.
class CacheEntry {
 public:
  // Opens the copy after checking all of it; null if there is no valid copy.
  std::unique_ptr<ByteSource> open() const;
  // Writes the copy under a temporary name and renames it. Small files are not cached. The pieces
  // must be the same as those in which the copy is read, since its checksum depends on them.
  void store(std::initializer_list<std::span<const std::byte>> pieces) const;

 private:
  friend std::optional<CacheEntry> cache_entry(const std::string& path);
  std::string path_;  // path of the copy
  struct Key {
    uint64_t size = 0, changed_ns = 0, inode = 0, gzip_tail = 0;
    bool operator==(const Key&) const = default;
  } key_;
};

// The entry for the gzip file `path`, whether its copy exists or not; empty if there is no cache
// folder or DPTRAIN_NO_CACHE is set.
std::optional<CacheEntry> cache_entry(const std::string& path);

}  // namespace dpt
