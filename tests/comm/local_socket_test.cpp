#include "comm/local_socket.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "data/folder.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a socket's path has at most 107 bytes") {
  const auto long_path = [](size_t bytes) { return fs::path("/" + std::string(bytes - 1, 'x')); };
  CHECK_FALSE(connect_to(long_path(107)));
  CHECK_THROWS_WITH_AS(connect_to(long_path(108)),
                       ("the socket path '" + long_path(108).string() +
                        "' is too long; set XDG_RUNTIME_DIR to a directory with a shorter path")
                           .c_str(),
                       Error);
}

TEST_CASE("a name in use is refused, and nothing but names of dead processes is removed") {
  const Folder folder;
  const fs::path path = socket_path(folder.path(), "a job"),
                 other = socket_path(folder.path(), "b");
  CHECK(path != other);
  CHECK(path.extension() == ".sock");
  const Listener live(path);
  CHECK_THROWS_WITH_AS(Listener{path},
                       "another rank 0 of this job is already waiting for its ranks; give each run "
                       "its own MASTER_PORT, or wait for that run to end",
                       Error);
  folder.write("file.txt", "not a socket");
  {
    const Listener second(other);
    CHECK(fs::exists(other));
  }
  CHECK_FALSE(fs::exists(other));
  CHECK(fs::exists(path));
  CHECK(fs::exists(folder.file("file.txt")));
}

TEST_CASE("ranks look in the directory that is named, or where the environment says") {
  CHECK(socket_directories(fs::path("/a/b")) == std::vector<fs::path>{"/a/b"});
  const auto usual = socket_directories(fs::path());
  CHECK_FALSE(usual.empty());
  CHECK(usual == socket_directories(std::getenv("XDG_RUNTIME_DIR"), std::getenv("HOME")));
}

TEST_CASE("a socket cannot be made where there is no directory") {
  const Folder folder;
  CHECK_THROWS_AS(Listener{folder.file("missing/a.sock")}, Error);
}

TEST_CASE("a message is whole, with a descriptor or none, and the end is seen behind it") {
  const Folder folder;
  const fs::path path = socket_path(folder.path(), "job");
  Listener listener(path);
  CHECK_FALSE(listener.accept());
  Descriptor client = connect_to(path);
  REQUIRE(client);
  const Descriptor server = listener.accept();
  REQUIRE(server);
  CHECK(peer_of(server.get()) == getpid());
  CHECK(peer_of(client.get()) == getpid());
  std::array<std::byte, 4> buffer{};
  CHECK(receive_message(server.get(), buffer).kind == Received::nothing_yet);

  const std::array<std::byte, 6> six{std::byte{1}, std::byte{2}, std::byte{3}};
  CHECK(send_message(client.get(), std::span(six).first(3), STDIN_FILENO));
  CHECK(send_message(client.get(), six));
  Received r = receive_message(server.get(), buffer);
  CHECK(r.kind == Received::message);
  CHECK(r.bytes == 3);
  CHECK(buffer[2] == std::byte{3});
  CHECK(r.fd.get() > STDERR_FILENO);
  CHECK((fcntl(r.fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
  r = receive_message(server.get(), buffer);
  CHECK(r.bytes == 6);  // more than there is room for
  CHECK_FALSE(r.fd);
  client = Descriptor();
  CHECK(receive_message(server.get(), buffer).kind == Received::ended);
  CHECK_FALSE(send_message(server.get(), six));
}

}  // namespace
}  // namespace dpt
