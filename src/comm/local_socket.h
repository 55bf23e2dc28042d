// Unix sockets that transfer whole messages, and the private directory for their names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/descriptor.h"

namespace dpt {

// Directories for sockets, best first: $XDG_RUNTIME_DIR/dptrain if $XDG_RUNTIME_DIR belongs to this
// user and is closed to others, /tmp/dptrain-UID, $HOME/.cache/dptrain. A null or empty argument is
// a variable that is not set.
std::vector<std::filesystem::path> socket_directories(const char* xdg_runtime_dir,
                                                      const char* home);

// The directories for this process's environment, or `named` alone if it is not empty.
std::vector<std::filesystem::path> socket_directories(const std::filesystem::path& named);

// The first directory that belongs to this user and is closed to others; created if it is missing.
// If another user has taken a name in /tmp, all ranks choose the same next directory. Throws
// Error{rank} with the reason for each directory and the remedy.
std::filesystem::path private_directory(std::span<const std::filesystem::path> candidates);

// The socket's path at which the ranks of a job find each other.
std::filesystem::path socket_path(const std::filesystem::path& directory, std::string_view job);

// A socket for others to connect to. The destructor removes its name. The constructor first removes
// names that dead processes left in the directory. It throws Error{rank}, also if a live process
// has the name, or holds the directory's lock for longer than timeout_s.
class Listener {
 public:
  explicit Listener(const std::filesystem::path& path, double timeout_s = 60);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int get() const { return socket_.get(); }
  Descriptor accept();  // empty: no connection is pending, or it is another user's

 private:
  std::filesystem::path path_;
  Descriptor socket_;
};

// Empty: nobody listens at `path` (yet).
Descriptor connect_to(const std::filesystem::path& path);

// The process at the other end, as of connecting or listening; nullopt: it is another user's.
std::optional<pid_t> peer_of(int socket);

// Sends one message, and a duplicate of descriptor `fd` if fd >= 0. Never waits. False: the
// receiver is gone or its buffer is full.
bool send_message(int socket, std::span<const std::byte> message, int fd = -1) noexcept;

struct Received {
  enum Kind { message, nothing_yet, ended } kind = nothing_yet;
  size_t bytes = 0;  // length of the message; greater than the buffer: truncated
  Descriptor fd;
};
Received receive_message(int socket, std::span<std::byte> buffer) noexcept;  // never waits

}  // namespace dpt
