// ZIP archives without compression, as torch.save writes them (PKWARE's APPNOTE.TXT, with ZIP64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "formats/random_access_file.h"

namespace dpt {

struct ZipMember {
  std::string name;
  uint64_t offset = 0, size = 0;  // of its bytes in the archive
};

// The members by the archive's directory, in its order. Throws Error{data} if the file is no ZIP
// archive or is damaged, has more than 131072 members or a directory of more than 16 MiB, and if a
// member is compressed, encrypted or not entirely in the file. Checksums are not verified.
std::vector<ZipMember> read_zip_directory(const RandomAccessFile& file);

// Makes an archive whose members begin at multiples of 64 bytes.
class ZipWriter {
 public:
  // REQUIRES: `content` outlives the writer.
  void add(const std::string& name, std::span<const std::byte> content);
  // The bytes of the archive, for write_file(). Valid as long as the writer.
  std::vector<std::span<const std::byte>> finish();

 private:
  void append(std::string text);

  std::deque<std::string> texts_;  // which parts_ refer to
  std::vector<std::span<const std::byte>> parts_;
  std::string directory_;
  uint64_t members_ = 0, size_ = 0;
};

}  // namespace dpt
