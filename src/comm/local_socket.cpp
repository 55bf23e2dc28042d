#include "comm/local_socket.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fail.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

std::string words_of(int error) { return std::generic_category().message(error); }

Descriptor new_socket() {
  Descriptor s(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) fail(Fault::rank, "cannot create a socket: {}", words_of(errno));
  return s;
}

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof address.sun_path)
    fail(Fault::rank,
         "the socket path '{}' is too long; set XDG_RUNTIME_DIR to a directory with a shorter path",
         text);
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

bool try_connect(int socket, const fs::path& path) {
  const sockaddr_un address = address_of(path);
  return connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// If connecting is refused, the process of that name is dead.
void remove_dead_names(const fs::path& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".sock") continue;
    const Descriptor probe = new_socket();
    if (!try_connect(probe.get(), entry.path()) && errno == ECONNREFUSED)
      fs::remove(entry.path(), error);
  }
}

// Why others may enter the directory; empty: only this user can.
std::string why_not_private(const fs::path& directory) {
  struct stat info {};
  if (lstat(directory.c_str(), &info) != 0) return words_of(errno);
  if (!S_ISDIR(info.st_mode)) return "it is not a directory";
  if (info.st_uid != geteuid()) return "it belongs to another user";
  if ((info.st_mode & 077) != 0) return "other users can enter it (its mode is not 0700)";
  return "";
}

// Waits for an exclusive lock on the directory. Throws Error{rank} after timeout_s.
Descriptor lock_directory(const fs::path& directory, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Descriptor out(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out) fail(Fault::rank, "cannot open '{}': {}", directory.native(), words_of(errno));
  while (flock(out.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      fail(Fault::rank, "cannot lock '{}': {}", directory.native(), words_of(errno));
    if (Clock::now() - start > std::chrono::duration<double>(timeout_s))
      fail(Fault::rank,
           "another of your processes has locked '{}' for {} s; end that process (`fuser` lists "
           "it), or set XDG_RUNTIME_DIR to another directory for all ranks",
           directory.native(), timeout_s);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return out;
}

}  // namespace

std::vector<fs::path> socket_directories(const char* xdg_runtime_dir, const char* home) {
  std::vector<fs::path> out;
  const auto given = [](const char* variable) { return variable != nullptr && *variable != 0; };
  if (given(xdg_runtime_dir) && why_not_private(xdg_runtime_dir).empty())
    out.push_back(fs::path(xdg_runtime_dir) / "dptrain");
  out.push_back(fs::path("/tmp") / fmt::format("dptrain-{}", geteuid()));
  if (given(home)) out.push_back(fs::path(home) / ".cache" / "dptrain");
  return out;
}

std::vector<fs::path> socket_directories(const fs::path& named) {
  if (!named.empty()) return {named};
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  return socket_directories(std::getenv("XDG_RUNTIME_DIR"), std::getenv("HOME"));
}

fs::path private_directory(std::span<const fs::path> candidates) {
  std::string reasons;
  for (const fs::path& directory : candidates) {
    std::error_code error;
    fs::create_directories(directory.parent_path(), error);
    const bool made = mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST;
    const std::string why = made ? why_not_private(directory) : words_of(errno);
    if (why.empty()) return directory;
    reasons += fmt::format("{}'{}': {}", reasons.empty() ? "" : "; ", directory.native(), why);
  }
  fail(Fault::rank,
       "found no usable directory for the socket through which ranks connect ({}); set "
       "XDG_RUNTIME_DIR for all ranks to a directory that you own, with mode 0700",
       reasons);
}

fs::path socket_path(const fs::path& directory, std::string_view job) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return directory / fmt::format("{:016x}.sock", hash);
}

Listener::Listener(const fs::path& path, double timeout_s) : socket_(new_socket()) {
  // One process at a time may remove dead names: a live process that has bound its name but does
  // not listen yet looks dead.
  const Descriptor lock = lock_directory(path.parent_path(), timeout_s);
  remove_dead_names(path.parent_path());
  const sockaddr_un address = address_of(path);
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EADDRINUSE)
      fail(Fault::rank,
           "another rank 0 of this job is already waiting for its ranks; give each run its own "
           "MASTER_PORT, or wait for that run to end");
    fail(Fault::rank, "cannot create the socket '{}': {}", path.native(), words_of(errno));
  }
  path_ = path;
  if (listen(socket_.get(), 128) != 0) {
    unlink(path_.c_str());
    fail(Fault::rank, "cannot listen on '{}': {}", path.native(), words_of(errno));
  }
}

Listener::~Listener() { unlink(path_.c_str()); }

Descriptor Listener::accept() {
  Descriptor peer(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  return peer && peer_of(peer.get()) ? std::move(peer) : Descriptor();
}

Descriptor connect_to(const fs::path& path) {
  Descriptor s = new_socket();
  return try_connect(s.get(), path) ? std::move(s) : Descriptor();
}

std::optional<pid_t> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
    return std::nullopt;
  return peer.pid;
}

bool send_message(int socket, std::span<const std::byte> message, int fd) noexcept {
  // sendmsg() does not write through iov_base, which is not const for recvmsg()'s sake.
  iovec piece{.iov_base = const_cast<std::byte*>(message.data()), .iov_len = message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(message.size());
}

Received receive_message(int socket, std::span<std::byte> buffer) noexcept {
  iovec piece{.iov_base = buffer.data(), .iov_len = buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_LEN(sizeof(int));  // for exactly one descriptor
  const int flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC;
  ssize_t n = recvmsg(socket, &header, flags);
  // The peer closed before reading everything. Its earlier messages can still be read after the
  // error.
  if (n < 0 && errno == ECONNRESET) n = recvmsg(socket, &header, flags);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (n <= 0) return {.kind = Received::ended, .bytes = 0, .fd = {}};
  Received received{.kind = Received::message, .bytes = static_cast<size_t>(n), .fd = {}};
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
      received.fd = Descriptor(fd);
    }
  return received;
}

}  // namespace dpt
