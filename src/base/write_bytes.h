// Writing to standard output or standard error.
#pragma once

#include <string_view>

namespace dpt {

// Writes all bytes to a descriptor that the caller owns. Returns 0 or the errno of the failure.
// Waits for the reader of a full pipe; once a stop was asked for (stop_asked()), for half a second
// in all and then returns EAGAIN, so that the pipe cannot keep a run from its orderly end. Thread:
// any.
int write_bytes(int fd, std::string_view bytes) noexcept;

}  // namespace dpt
