#include "comm/local_socket.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

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
  if (!s) fail(Fault::rank, "cannot make a socket: {}", words_of(errno));
  return s;
}

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof address.sun_path)
    fail(Fault::rank, "'{}' is too long for a socket's name; set XDG_RUNTIME_DIR to a shorter one",
         text);
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

bool try_connect(int socket, const fs::path& path) {
  const sockaddr_un address = address_of(path);
  return connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Nobody listens under a name whose process is dead, however it died.
void remove_dead_names(const fs::path& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".sock") continue;
    const Descriptor probe = new_socket();
    if (!try_connect(probe.get(), entry.path()) && errno == ECONNREFUSED)
      fs::remove(entry.path(), error);
  }
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}
int Descriptor::release() { return std::exchange(fd_, -1); }

fs::path private_directory(const fs::path& wanted) {
  fs::path directory = wanted;
  if (directory.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    const bool usable = runtime != nullptr && access(runtime, W_OK | X_OK) == 0;
    directory = usable ? fs::path(runtime) / "dptrain"
                       : fs::path("/tmp") / fmt::format("dptrain-{}", geteuid());
  }
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    fail(Fault::rank, "cannot make the directory '{}' in which ranks meet: {}", directory.native(),
         words_of(errno));
  struct stat info {};
  if (lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & 077) != 0)
    fail(Fault::rank,
         "the directory '{}' in which ranks meet must be yours and closed to others; remove it, "
         "or set XDG_RUNTIME_DIR to another place",
         directory.native());
  return directory;
}

fs::path socket_path(const fs::path& directory, std::string_view job) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return directory / fmt::format("{:016x}.sock", hash);
}

Listener::Listener(const fs::path& path) : socket_(new_socket()) {
  // One process at a time looks for dead names: a live one that has its name, but does not listen
  // yet, looks dead.
  const Descriptor lock(open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock || flock(lock.get(), LOCK_EX) != 0)
    fail(Fault::rank, "cannot lock '{}': {}", path.parent_path().native(), words_of(errno));
  remove_dead_names(path.parent_path());
  const sockaddr_un address = address_of(path);
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EADDRINUSE)
      fail(Fault::rank,
           "another rank 0 of this job waits for its ranks already; give each run its own "
           "MASTER_PORT, or wait until that one is over");
    fail(Fault::rank, "cannot make the socket '{}': {}", path.native(), words_of(errno));
  }
  path_ = path;
  if (listen(socket_.get(), 128) != 0) {
    unlink(path_.c_str());
    fail(Fault::rank, "cannot listen at '{}': {}", path.native(), words_of(errno));
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
  // sendmsg() does not write through the pointer that it has no const for.
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
  header.msg_controllen = sizeof control;
  const int flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC;
  ssize_t n = recvmsg(socket, &header, flags);
  // The other end closed before it had read all; what it said before that comes after the error.
  if (n < 0 && errno == ECONNRESET) n = recvmsg(socket, &header, flags);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (n <= 0) return {.what = Received::ended, .bytes = 0, .fd = {}};
  Received received{.what = Received::message, .bytes = static_cast<size_t>(n), .fd = {}};
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
      received.fd = Descriptor(fd);
    }
  return received;
}

}  // namespace dpt
