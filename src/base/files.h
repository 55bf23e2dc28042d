// Files that dptrain reads and writes as a whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace dpt {

// Opens a file for reading and returns its descriptor, which the caller closes. Throws Error{fault}
// with the path and the reason for what is not a regular file (a folder, FIFO, socket or device),
// without waiting for one, or reading from it.
int open_regular_file(const std::string& path, Fault fault = Fault::data);

// The whole content of a regular file. Throws Error{fault} with the path and the reason where it
// cannot be opened or read, is no regular file, or has more than `most_bytes`, which is found
// before anything is allocated.
std::string read_file(const std::string& path, size_t most_bytes, Fault fault = Fault::data);

// The same of what may also be a pipe or a device, as /dev/stdin: waits for it, reads until its
// end, and no more than shows that it has over `most_bytes`.
std::string read_stream(const std::string& path, size_t most_bytes, Fault fault = Fault::data);

// A file that does not fit on its disk, or into the user's quota.
class NoRoom : public Error {
 public:
  explicit NoRoom(const std::string& message) : Error(Fault::failed, message) {}
};

// Throws Error{failed}, NoRoom for a full disk: the path, the reason by errno and what the user can
// do about it.
[[noreturn]] void fail_writing(const std::string& path);

// Replaces what a file holds; follows links. Throws Error{failed}, which ends with `remedy`, or,
// without one, with what fits the reason.
void write_text(const std::string& path, std::string_view text, std::string_view remedy = "");

// With those above it. `what`: of the Error{failed}, "the run directory".
void make_folder(const std::string& path, std::string_view what);

}  // namespace dpt
