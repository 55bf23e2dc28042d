// The client of torch's TCPStore, against a store that speaks the wire format.
#include "comm/hosts/tcp_store.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/hosts/bytes.h"
#include "comm/hosts/pretended_hosts.h"

namespace dpt {
namespace {

// Serves connections one message at a time, in a thread per connection.
class FakeStore {
 public:
  // wrong: what it answers in place of the truth; "": nothing is wrong
  explicit FakeStore(std::string wrong = "")
      : wrong_(std::move(wrong)),
        listener_(numeric_address("127.0.0.1", 0).value()),
        thread_([this] { accept_all(); }) {}
  ~FakeStore() {
    end_ = true;
    thread_.join();
    for (std::thread& t : clients_) t.join();
  }
  FakeStore(const FakeStore&) = delete;
  FakeStore& operator=(const FakeStore&) = delete;
  TcpAddress address() const { return listener_.address(); }

 private:
  void accept_all() {
    while (!end_) {
      wait_for_socket(listener_.get(), POLLIN, deadline_in(0.01));
      TcpAddress from;
      if (Descriptor s = listener_.accept(from)) {
        sockets_.push_back(std::move(s));
        clients_.emplace_back([this, fd = sockets_.back().get()] { serve(fd); });
      }
    }
  }
  bool read(int fd, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      wait_for_socket(fd, POLLIN, deadline_in(0.01));
      const ssize_t n = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (n == 0 || end_) return false;
      if (n > 0) bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return true;
  }
  template <class T>
  T number(int fd) const {
    std::array<std::byte, sizeof(T)> bytes{};
    if (!read(fd, bytes)) throw std::runtime_error("ended");
    return ByteReader(bytes).number<T>();
  }
  std::string text(int fd) const {
    std::string out(number<uint64_t>(fd), '\0');
    if (!read(fd, std::as_writable_bytes(std::span(out)))) throw std::runtime_error("ended");
    return out;
  }
  static void answer(int fd, const ByteWriter& bytes) {
    send(fd, bytes.bytes().data(), bytes.bytes().size(), MSG_NOSIGNAL);
  }
  void serve(int fd) {
    try {
      if (number<uint8_t>(fd) != 0 || number<uint32_t>(fd) != 0x3C85F7CE) return;
      for (;;) handle(fd, number<uint8_t>(fd));
    } catch (const std::runtime_error&) {
    }
    shutdown(fd, SHUT_RDWR);
  }
  void handle(int fd, int query) {
    ByteWriter out;
    if (query == 13) {
      out.number(number<uint32_t>(fd) + (wrong_ == "nonce" ? 1 : 0));
    } else if (query == 1) {
      const std::string key = text(fd), value = text(fd);
      const std::lock_guard lock(mutex_);
      values_[key] = value;
      return;
    } else if (query == 5) {
      CHECK(number<uint64_t>(fd) == 1);
      const std::string key = text(fd);
      const std::lock_guard lock(mutex_);
      const uint8_t answer = values_.contains(key) || wrong_ == "length" ? 0 : 1;
      out.number(wrong_ == "answer" ? uint8_t{7} : answer);
    } else if (query == 3) {
      const std::string key = text(fd);
      const std::lock_guard lock(mutex_);
      out.number(wrong_ == "length" ? ~uint64_t{0} : uint64_t{values_[key].size()});
      out.raw(std::as_bytes(std::span(values_[key])));
    } else {
      throw std::runtime_error("unknown");
    }
    answer(fd, out);
  }

  std::string wrong_;
  TcpListener listener_;
  std::atomic<bool> end_ = false;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::vector<Descriptor> sockets_;
  std::vector<std::thread> clients_;
  std::thread thread_;
};

// Publishes an address of host 0, and returns when it is there.
void put(const FakeStore& fake, const std::string& address) {
  TcpStore store(fake.address(), deadline_in(30));
  store.set("dptrain/test/host 0", address, deadline_in(30));
  CHECK(store.get("dptrain/test/host 0", deadline_in(30)) == address);
}

TEST_CASE("values are put into a store and read from it") {
  const FakeStore fake;
  TcpStore store(fake.address(), deadline_in(30));
  CHECK(!store.get("a", deadline_in(30)));
  store.set("a", "10.0.0.2:4711", deadline_in(30));
  CHECK(store.get("a", deadline_in(30)) == "10.0.0.2:4711");
  store.set("a", "", deadline_in(30));
  CHECK(store.get("a", deadline_in(30)) == "");  // set() has no answer; this one comes after it
  CHECK(TcpStore(fake.address(), deadline_in(30)).get("a", deadline_in(30)) == "");
}

TEST_CASE("what is no store, or answers wrongly, is refused") {
  const auto refusal = [](const std::string& wrong) -> std::string {
    const FakeStore fake(wrong);
    try {
      TcpStore(fake.address(), deadline_in(30)).get("a", deadline_in(30));
      return "";
    } catch (const Error& e) {
      CHECK(e.fault() == Fault::rank);
      std::string text = e.what();
      const std::string at = fake.address().text();
      const size_t where = text.find(at);
      return where == std::string::npos ? text : text.replace(where, at.size(), "AT");
    }
  };
  CHECK(refusal("nonce") == "what listens at AT is not torchrun's store");
  CHECK(refusal("answer") == "torchrun's store at AT sent an unknown answer, 7");
  CHECK(refusal("length") ==
        "torchrun's store at AT has a value of 18446744073709551615 bytes for 'a'");
  const TcpListener silent(numeric_address("127.0.0.1", 0).value());
  CHECK_THROWS_AS(TcpStore(silent.address(), deadline_in(0.05)), Error);
}

TEST_CASE("hosts find each other through torchrun's store, whoever comes first") {
  const FakeStore fake;
  auto hosts = pretended_hosts({1, 2, 1});
  for (PretendedHost& p : hosts) {
    p.world.master = {.host = "127.0.0.1",
                      .port = fake.address().port(),
                      .is_store = true,
                      .source = "MASTER_ADDR and MASTER_PORT"};
  }
  // An address that an earlier attempt has left behind, where nobody listens.
  put(fake, fmt::format("127.0.0.1:{}", free_port()));
  const auto errors = on_each_host(hosts, [](const PretendedHost& p) {
    if (p.world.host == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto channel = join(p);
    channel->all_gather("");
    channel->goodbye();
  });
  for (const std::string& e : errors) CHECK(e.empty());
}

TEST_CASE("only numeric addresses are taken from a store") {
  const FakeStore fake;
  auto hosts = pretended_hosts({1, 1});
  hosts[1].world.master = {.host = "127.0.0.1",
                           .port = fake.address().port(),
                           .is_store = true,
                           .source = "MASTER_ADDR and MASTER_PORT"};
  hosts[1].settings.gathering.timeout_s = 0.2;
  put(fake, "localhost:1");
  const auto error = on_each_host({hosts[1]}, [](const PretendedHost& p) { join(p); })[0];
  CHECK(error.find("torchrun's store has an address of host 0 that is none: localhost:1") !=
        std::string::npos);
}

}  // namespace
}  // namespace dpt
