// Writing to a descriptor of the caller: standard output or standard error.
#pragma once

#include <string_view>

namespace dpt {

// Writes all bytes; returns 0, or the errno of what failed. A pipe that nobody reads is waited for,
// but once a stop was asked for (stop_asked()) for half a second in all: then EAGAIN is returned,
// so that a full pipe does not keep a run from its orderly end. Thread: any.
int write_bytes(int fd, std::string_view bytes) noexcept;

}  // namespace dpt
