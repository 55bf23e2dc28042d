// Reads the members of a tar archive in order.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "data/readers/bytes.h"

namespace dpt {

// The content of one member.
struct TarMember {
  std::string name;  // "cifar-10-batches-bin/data_batch_1.bin"
  std::shared_ptr<std::byte[]> data;
  size_t size = 0;
  std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

// Reads a plain or gzip'ed archive (POSIX ustar, and what GNU tar and bsdtar write) to its end, and
// calls `take` for each file whose name `wanted` accepts. Throws Error{data} if it is not a tar
// archive, is cut short, or announces more bytes than it can hold or than `most_bytes` (members and
// headers together); this is checked before decompressing them.
void read_tar(const std::string& path, uint64_t most_bytes,
              const std::function<bool(std::string_view name)>& wanted,
              const std::function<void(TarMember)>& take);

}  // namespace dpt
