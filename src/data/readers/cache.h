// Decompressed copies of data files in the user's cache folder: inflating Fashion-MNIST takes
// longer than training an epoch on it. Nothing depends on it: what is missing, old, damaged or
// forbidden is passed over silently.
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

// ${XDG_CACHE_HOME:-~/.cache}/dptrain; empty where neither is known.
std::string cache_folder();

// One file's place in the cache. The copy is named after the file's path and holds the file's
// size, time of change, gzip checksum and length, and a checksum of its own: it is used only if all
// of them hold.
class CacheEntry {
 public:
  // The copy, checked in whole, or null.
  std::unique_ptr<ByteSource> open() const;
  // Writes the copy, aside first and then renamed. Small ones are left out. The pieces must be
  // those in which it is read.
  void store(std::initializer_list<std::span<const std::byte>> pieces) const;

 private:
  friend std::optional<CacheEntry> cache_entry(const std::string& path);
  std::string path_;  // of the copy
  struct Key {
    uint64_t size = 0, changed_ns = 0, inode = 0, gzip_tail = 0;
    bool operator==(const Key&) const = default;
  } key_;
};

// Where the copy of the gzip file `path` is or would be; empty where there is no cache folder or
// DPTRAIN_NO_CACHE is set.
std::optional<CacheEntry> cache_entry(const std::string& path);

}  // namespace dpt
