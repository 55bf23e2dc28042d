// Members of a tar archive, in the order in which they stand.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "data/readers/bytes.h"

namespace dpt {

// The bytes of one member; not initialised before they are read.
struct TarMember {
  std::string name;  // "cifar-10-batches-bin/data_batch_1.bin"
  std::shared_ptr<std::byte[]> data;
  size_t size = 0;
  std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

// Reads an archive (POSIX ustar, and what GNU tar and bsdtar write) to its end, plain or gzip, and
// calls `take` with each file whose name `wanted` accepts. Throws Error{data} for what is no tar
// archive, is cut short, or announces more than it can hold or than `most_bytes`, all members and
// headers together, before any of that is decompressed.
void read_tar(const std::string& path, uint64_t most_bytes,
              const std::function<bool(std::string_view name)>& wanted,
              const std::function<void(TarMember)>& take);

}  // namespace dpt
