// Reading and writing whole files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace dpt {

// Opens a regular file for reading and returns its descriptor, which the caller closes. Throws
// Error{fault} with the path and the reason. Folders, FIFOs, sockets and devices are refused
// without reading from them or waiting for a writer.
int open_regular_file(const std::string& path, Fault fault = Fault::data);

// Returns the whole content of a regular file. Throws Error{fault} with the path and the reason if
// it cannot be opened or read, is not a regular file, or has more than `most_bytes`; the size is
// checked before anything is allocated.
std::string read_file(const std::string& path, size_t most_bytes, Fault fault = Fault::data);

// Like read_file(), but also reads pipes and devices such as /dev/stdin: waits for data and reads
// to the end, stopping with an error once there are more than `most_bytes`.
std::string read_stream(const std::string& path, size_t most_bytes, Fault fault = Fault::data);

// The disk or the user's quota is full.
class DiskFull : public Error {
 public:
  explicit DiskFull(const std::string& message) : Error(Fault::failed, message) {}
};

// Throws Error{failed} (DiskFull if the disk is full) with the path, the reason from errno, and
// what the user can do about it.
[[noreturn]] void fail_writing(const std::string& path);

// Creates or overwrites a file; follows symbolic links. Throws Error{failed}, whose message ends
// with `remedy`; if that is empty, like fail_writing().
void write_text(const std::string& path, std::string_view text, std::string_view remedy = "");

// Creates the folder and its parents. Throws Error{failed}; `what` names the folder in the message,
// as in "the run directory".
void make_folder(const std::string& path, std::string_view what);

}  // namespace dpt
