// A folder for the files of one test, and bytes to put there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "spec/registry_entry.h"
#include "spec/tree.h"

namespace dpt {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dptrain-test-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

// A file of NPY 1.0 with these numbers; type: "<f4", shape: "(2, 3)".
template <class T>
std::string npy(const std::string& type, const std::string& shape, const std::vector<T>& values) {
  const std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

inline std::string gzip(const std::string& bytes, int level = 6) {
  z_stream z{};
  deflateInit2(&z, level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, bytes.size()) + 32, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline std::string big_endian(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i));
  return out;
}

// An IDX header.
inline std::string idx_header(uint8_t type, const std::vector<uint32_t>& extents) {
  std::string out{'\0', '\0', static_cast<char>(type), static_cast<char>(extents.size())};
  for (const uint32_t e : extents) out += big_endian(e, 4);
  return out;
}

// A u8 file whose elements count up.
inline std::string idx_bytes(const std::vector<uint32_t>& extents) {
  std::string out = idx_header(0x08, extents);
  size_t count = 1;
  for (const uint32_t e : extents) count *= e;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(i);
  return out;
}

// Settings as a spec in that folder would give them.
inline std::any settings_of(const RegistryEntry& type, const std::string& yaml,
                            const std::string& folder = "") {
  const SourceFile file{"test", yaml, folder};
  Diagnostics d;
  Node node = read_yaml(file, d);
  anchor_settings(node, type);
  const std::any settings = type.decode(node, {"'" + std::string(type.name) + "'", {}}, d);
  INFO(d.render());
  REQUIRE(d.ok());
  return settings;
}

inline std::string complaint_of(const RegistryEntry& type, const std::string& yaml) {
  const SourceFile file{"test", yaml};
  Diagnostics d;
  const Node node = read_yaml(file, d);
  type.decode(node, {"'" + std::string(type.name) + "'", {&file, 1, 1, 1}}, d);
  return d.render();
}

// The message of the Error{fault} that f throws; empty if it throws none.
template <class F>
std::string error_of(Fault fault, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.fault() == fault);
    return e.what();
  }
  return "";
}
template <class F>
std::string data_error(F&& f) {
  return error_of(Fault::data, f);
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dpt
