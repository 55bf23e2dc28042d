// Unix sockets that send whole messages, and the private directory in which they have their names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace dpt {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Where sockets can lie, best first: $XDG_RUNTIME_DIR/dptrain if $XDG_RUNTIME_DIR is this user's
// and closed to others, /tmp/dptrain-UID, $HOME/.cache/dptrain. A null or empty argument is a
// variable that is not set.
std::vector<std::filesystem::path> socket_directories(const char* xdg_runtime_dir,
                                                      const char* home);

// The directories of this process's environment, or `named` alone where it is given.
std::vector<std::filesystem::path> socket_directories(const std::filesystem::path& named);

// The first of the directories that is this user's and closed to others, made where it is missing.
// Another user who has taken a name, in /tmp, sends all ranks to the same next one.
// Errors: Error{rank}, with the reason for each directory and the remedy.
std::filesystem::path private_directory(std::span<const std::filesystem::path> candidates);

// The name under which the ranks of a job look for each other in the directory.
std::filesystem::path socket_path(const std::filesystem::path& directory, std::string_view job);

// A socket that others can connect to. Its name goes when it does; names that dead processes left
// in the directory are removed first. Errors: Error{rank}, also when a live process has the name,
// or holds the directory's lock for longer than timeout_s.
class Listener {
 public:
  explicit Listener(const std::filesystem::path& path, double timeout_s = 60);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int get() const { return socket_.get(); }
  Descriptor accept();  // none: nobody is there, or it was somebody else's process

 private:
  std::filesystem::path path_;
  Descriptor socket_;
};

// None: nobody listens there (yet).
Descriptor connect_to(const std::filesystem::path& path);

// The process at the other end when it connected or listened; nullopt: it is another user's.
std::optional<pid_t> peer_of(int socket);

// One whole message, with a descriptor for the other process if fd >= 0. False: it is gone.
bool send_message(int socket, std::span<const std::byte> message, int fd = -1) noexcept;

struct Received {
  enum What { message, nothing_yet, ended } what = nothing_yet;
  size_t bytes = 0;  // of the message; more than the buffer holds: it was longer
  Descriptor fd;
};
Received receive_message(int socket, std::span<std::byte> buffer) noexcept;  // never waits

}  // namespace dpt
