#include "comm/rendezvous.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "comm/local_socket.h"
#include "comm/once_per_job.h"
#include "comm/workers.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using std::chrono::milliseconds;

constexpr uint64_t kMagic = 0x326f6c6c65487044;  // "DpHello2"
constexpr double kHelloSeconds = 5;              // time for a new connection to send its hello
// Extra time of other ranks, so that rank 0 is the one to report who is missing.
constexpr double kGraceSeconds = 5;
constexpr char kGoodbye = 'G';

struct Hello {
  uint64_t magic = kMagic;
  uint64_t spec = 0, build = 0, bytes = 0;  // hashes, and the size of the memory
  int32_t rank = 0, size = 0;
  std::array<char, 400> failure{};  // why the rank cannot take part; zero-terminated
  uint64_t sum = 0;                 // hash of all bytes before it
};

struct Answer {
  uint64_t magic = kMagic;
  int32_t welcome = 0;
  std::array<char, 500> reason{};  // zero-terminated
};

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Copies as much as fits; the last byte stays 0.
template <size_t N>
void put_text(std::array<char, N>& to, std::string_view text) {
  text.copy(to.data(), N - 1);
}

uint64_t sum_of(const Hello& hello) {
  return hash_of({reinterpret_cast<const char*>(&hello), offsetof(Hello, sum)});
}

Hello hello_of(const World& world, const Identity& identity, std::string_view failure = {}) {
  Hello out{.spec = hash_of(identity.spec),
            .build = hash_of(identity.build),
            .bytes = identity.bytes,
            .rank = world.rank,
            .size = world.size};
  put_text(out.failure, failure);
  out.sum = sum_of(out);
  return out;
}

// Whether `hello` can come from a rank other than 0 of some run.
bool is_valid(const Hello& hello) {
  return hello.magic == kMagic && hello.sum == sum_of(hello) && hello.rank >= 1 &&
         hello.rank < hello.size && hello.failure.back() == 0;
}

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

struct Peer {
  Descriptor socket;
  int rank = -1;  // -1: no hello yet
  pid_t pid = 0;
  Clock::time_point since = Clock::now();
};

std::string name_of(const World& world, int rank, pid_t pid) {
  return fmt::format("rank {} (pid {})", world.number(rank), pid);
}

std::string failed_early(const World& world, int rank, pid_t pid, std::string_view why) {
  return fmt::format("{} failed before all ranks had started: {}", name_of(world, rank, pid), why);
}

std::filesystem::path path_of(const World& world, const RendezvousSettings& settings) {
  return socket_path(private_directory(socket_directories(settings.directory)), world.job);
}

Clock::time_point in(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
}

// The part of rank 0: collects the other ranks.
class Gathering {
 public:
  Gathering(const World& world, const Identity& identity)
      : world_(world), mine_(hello_of(world, identity)) {}

  // Returns the others, by rank from 1 on, when all have come and have the memory.
  std::vector<Peer> gather(Listener& listener, Clock::time_point deadline,
                           const RendezvousSettings& settings);
  void hand_over(std::vector<Peer>& peers, const SharedMemory& memory);
  // Instead of gather(): answers the other ranks, as they connect, with why there is no run.
  void refuse(Listener& listener, Clock::time_point deadline, const std::string& why);

 private:
  bool all_here() const {
    return std::ranges::count_if(peers_, [](const Peer& p) { return p.rank > 0; }) ==
           world_.size - 1;
  }
  void look(Listener& listener, Clock::time_point deadline);
  bool keep(Peer& peer);  // false: drop the connection
  void note(const Peer& stranger);
  void check(const Hello& hello, const Peer& peer);  // sets reason_ on a mismatch
  std::string missing() const;
  void answer_all(const std::string& why);

  const World& world_;
  Hello mine_;
  std::list<Peer> peers_;
  std::string reason_;
  bool noted_ = false;
};

std::vector<Peer> Gathering::gather(Listener& listener, Clock::time_point deadline,
                                    const RendezvousSettings& settings) {
  const Clock::time_point notice = in(settings.notice_s);
  bool told = false;
  while (!all_here() && reason_.empty()) {
    const bool late = Clock::now() >= deadline;
    look(listener, deadline);
    if (!late && !told && Clock::now() >= notice && !all_here() && reason_.empty()) {
      told = true;
      print_stderr("rank {} is waiting for {} of {} to start, for at most {} s\n", world_.number(0),
                   missing(), world_.all_ranks(), settings.timeout_s);
    }
    if (late && !all_here() && reason_.empty())
      reason_ = fmt::format(
          "{} of {} did not connect within {} s; start all ranks of a run together, on this "
          "machine, with the same {} and, where it is set, the same MASTER_PORT (this job is '{}')",
          missing(), world_.all_ranks(), settings.timeout_s, world_.launcher, world_.job);
  }
  if (!reason_.empty()) {
    answer_all(reason_);
    throw Error(Fault::rank, reason_);
  }
  std::vector<Peer> sorted;
  for (Peer& p : peers_)
    if (p.rank > 0) sorted.push_back(std::move(p));
  std::sort(sorted.begin(), sorted.end(),
            [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
  return sorted;
}

void Gathering::look(Listener& listener, Clock::time_point deadline) {
  std::vector<pollfd> news = {{.fd = listener.get(), .events = POLLIN, .revents = 0}};
  for (const Peer& p : peers_)
    news.push_back({.fd = p.socket.get(), .events = POLLIN, .revents = 0});
  const Seconds left = std::min<Seconds>(deadline - Clock::now(), Seconds(0.2));
  poll(news.data(), news.size(), std::max(1, static_cast<int>(left.count() * 1000)));
  for (auto p = peers_.begin(); p != peers_.end();) p = keep(*p) ? std::next(p) : peers_.erase(p);
  if ((news[0].revents & POLLIN) == 0) return;
  Peer peer{.socket = listener.accept()};
  if (!peer.socket) return;
  peer.pid = peer_of(peer.socket.get()).value_or(0);
  peers_.push_back(std::move(peer));
  // Too many connections without a hello
  if (peers_.size() > 2 * static_cast<size_t>(world_.size) + 8)
    peers_.erase(
        std::find_if(peers_.begin(), peers_.end(), [](const Peer& p) { return p.rank < 0; }));
}

bool Gathering::keep(Peer& peer) {
  std::array<std::byte, sizeof(Hello)> buffer;
  const Received r = receive_message(peer.socket.get(), buffer);
  if (r.kind == Received::nothing_yet)
    return peer.rank > 0 || Clock::now() - peer.since < Seconds(kHelloSeconds);
  if (peer.rank > 0) {
    if (r.kind == Received::ended)
      reason_ = name_of(world_, peer.rank, peer.pid) + " ended before all ranks had connected";
    return true;
  }
  if (r.kind == Received::ended) return false;
  Hello hello;
  std::memcpy(&hello, buffer.data(), sizeof hello);
  if (r.bytes != sizeof hello || !is_valid(hello)) {
    note(peer);
    return false;
  }
  check(hello, peer);
  peer.rank = hello.rank;
  return true;
}

void Gathering::note(const Peer& stranger) {
  if (std::exchange(noted_, true)) return;
  print_stderr(
      "dptrain: rank {} is waiting for the other ranks and ignored a message from pid {}, which is "
      "not a rank of this dptrain\n",
      world_.number(0), stranger.pid);
}

void Gathering::check(const Hello& hello, const Peer& peer) {
  const std::string name = name_of(world_, hello.rank, peer.pid), me = name_of(world_, 0, getpid());
  if (hello.failure[0] != 0) {
    reason_ = failed_early(world_, hello.rank, peer.pid, hello.failure.data());
    return;
  }
  const auto differ = [&](std::string_view what) {
    reason_ = fmt::format("{} and {} have different {}", me, name, what);
  };
  if (hello.size != mine_.size) return differ("numbers of ranks");
  for (const Peer& other : peers_)
    if (&other != &peer && other.rank == hello.rank)
      reason_ = fmt::format("rank {} was started twice, as pid {} and as pid {}",
                            world_.number(hello.rank), other.pid, peer.pid);
  if (hello.build != mine_.build) return differ("builds of dptrain; use the same program");
  if (hello.spec != mine_.spec) return differ("specs; give all ranks the same file and overrides");
  if (hello.bytes != mine_.bytes)
    reason_ = fmt::format("{} needs {} bytes of shared memory, {} needs {}", me, mine_.bytes, name,
                          hello.bytes);
}

std::string Gathering::missing() const {
  std::string list;
  for (int r = 1, shown = 0; r < world_.size; ++r) {
    if (std::any_of(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.rank == r; }))
      continue;
    if (++shown > 16) {
      list += ", ...";
      break;
    }
    list += (list.empty() ? "" : ", ") + std::to_string(world_.number(r));
  }
  return (list.find(',') == std::string::npos ? "rank " : "ranks ") + list;
}

void Gathering::answer_all(const std::string& why) {
  Answer answer;
  put_text(answer.reason, why);
  for (const Peer& p : peers_) send_message(p.socket.get(), bytes_of(answer));
}

void Gathering::refuse(Listener& listener, Clock::time_point deadline, const std::string& why) {
  while (!all_here() && Clock::now() < deadline) {
    look(listener, deadline);
    answer_all(why);
    // Sockets of ended ranks stay readable: do not spin
    std::this_thread::sleep_for(milliseconds(10));
  }
}

void Gathering::hand_over(std::vector<Peer>& peers, const SharedMemory& memory) {
  const Answer welcome{.welcome = 1};
  for (const Peer& p : peers)
    if (!send_message(p.socket.get(), bytes_of(welcome), memory.fd()))
      fail(Fault::rank, "{} ended before all ranks had connected", name_of(world_, p.rank, p.pid));
}

// Rank 0's answer to a rank that has failed; empty if there is none in time.
std::string answer_of(int socket, Clock::time_point deadline) {
  while (Clock::now() < deadline) {
    pollfd news{.fd = socket, .events = POLLIN, .revents = 0};
    poll(&news, 1, 200);
    Answer answer;
    const Received r = receive_message(socket, std::as_writable_bytes(std::span(&answer, 1)));
    if (r.kind == Received::nothing_yet) continue;
    answer.reason.back() = 0;
    const bool valid = r.kind == Received::message && r.bytes == sizeof answer &&
                       answer.magic == kMagic && answer.welcome == 0;
    return valid ? answer.reason.data() : "";
  }
  return "";
}

Descriptor find_rank_0(const World& world, const std::filesystem::path& path,
                       Clock::time_point deadline, const RendezvousSettings& settings) {
  const Clock::time_point notice = in(settings.notice_s);
  std::optional<OncePerJob> once;  // until this rank waits no more
  for (;;) {
    if (Descriptor s = connect_to(path)) return s;
    if (!once && Clock::now() >= notice && Clock::now() < deadline) {
      once.emplace(world.job, "waits for rank 0", settings.directory);
      if (once->speaks())
        print_stderr("rank {} is waiting for rank {} of {} to start, for at most {} s\n",
                     world.number(world.rank), world.number(0), world.all_ranks(),
                     settings.timeout_s);
    }
    if (Clock::now() >= deadline)
      fail(Fault::rank,
           "rank {} of {} did not start within {} s; start all ranks of a run together, on this "
           "machine, with the same {} and, where it is set, the same MASTER_PORT (this is rank {} "
           "of job '{}')",
           world.number(0), world.all_ranks(), settings.timeout_s, world.launcher,
           world.number(world.rank), world.job);
    std::this_thread::sleep_for(milliseconds(5));
  }
}

// The part of other ranks: returns the memory that rank 0 sends.
SharedMemory ask_for_memory(int socket, const World& world, const Identity& identity,
                            double timeout_s) {
  const std::string rank_0 = name_of(world, 0, peer_of(socket).value_or(0));
  const Clock::time_point deadline = in(timeout_s + kGraceSeconds);
  send_message(socket, bytes_of(hello_of(world, identity)));  // if this fails, receiving fails too
  for (;;) {
    pollfd news{.fd = socket, .events = POLLIN, .revents = 0};
    poll(&news, 1, 200);
    std::array<std::byte, sizeof(Answer)> buffer;
    Received r = receive_message(socket, buffer);
    if (r.kind == Received::ended)
      fail(Fault::rank, "{} ended before all ranks had connected", rank_0);
    if (r.kind == Received::message) {
      Answer answer;
      std::memcpy(&answer, buffer.data(), sizeof answer);
      if (r.bytes != sizeof answer || answer.magic != kMagic)
        fail(Fault::rank, "{} is not a rank of this dptrain", rank_0);
      answer.reason.back() = 0;
      if (answer.welcome == 0) throw TeamBroken(answer.reason.data());
      return SharedMemory::adopt(r.fd.release(), identity.bytes);
    }
    if (Clock::now() >= deadline)
      fail(Fault::rank, "{} did not answer within {} s", rank_0, timeout_s + kGraceSeconds);
  }
}

}  // namespace

struct Rendezvous::State {
  int rank = 0;
  LauncherProcess launcher_process;
  SharedMemory memory;
  std::vector<Peer> peers;  // rank 0: all other ranks; otherwise rank 0
  Descriptor wake;          // an eventfd that ends the watcher
  std::thread watcher;

  void watch(Team team);
};

// Waits until every peer has said goodbye or ended. Rank 0 watches all ranks; the others watch rank
// 0.
void Rendezvous::State::watch(Team team) {
  std::vector<pollfd> news = {{.fd = wake.get(), .events = POLLIN, .revents = 0}};
  for (const Peer& p : peers) {
    news.push_back({.fd = p.socket.get(), .events = POLLIN, .revents = 0});
    if (p.pid > 0) team.set_pid(p.rank, p.pid);
  }
  for (size_t left = peers.size(); left > 0;) {
    if (poll(news.data(), news.size(), -1) < 0) continue;
    if (news[0].revents != 0) return;
    for (size_t i = 1; i < news.size(); ++i) {
      if (news[i].revents == 0) continue;
      std::byte word{0};
      const Received r = receive_message(news[i].fd, std::span(&word, 1));
      if (r.kind == Received::nothing_yet) continue;
      const Peer& p = peers[i - 1];
      if (r.kind == Received::ended || word != std::byte{kGoodbye})
        team.break_up(
            p.rank, fmt::format("{} ended unexpectedly {}", team.name_of(p.rank, "signal unknown"),
                                team.where_is(p.rank)));
      news[i].fd = -1;  // poll() skips it
      --left;
    }
  }
}

Rendezvous::Rendezvous(std::unique_ptr<State> state) : state_(std::move(state)) {}
Rendezvous::Rendezvous(Rendezvous&&) noexcept = default;

Rendezvous::~Rendezvous() {
  if (!state_ || !state_->watcher.joinable()) return;
  const uint64_t one = 1;
  if (write(state_->wake.get(), &one, sizeof one) == sizeof one) state_->watcher.join();
}

Rendezvous Rendezvous::join(const World& world, const Identity& identity,
                            const std::function<void(SharedMemory&)>& prepare,
                            const RendezvousSettings& settings) {
  const Clock::time_point deadline = in(settings.timeout_s);
  const auto path = path_of(world, settings);
  const LauncherProcess launcher_process{.pid = world.parent, .name = world.launcher};
  Descriptor wake(eventfd(0, EFD_CLOEXEC));
  if (world.rank == 0) {
    Listener listener(path, settings.timeout_s);
    SharedMemory memory = SharedMemory::create(identity.bytes);
    prepare(memory);
    Gathering gathering(world, identity);
    std::vector<Peer> peers = gathering.gather(listener, deadline, settings);
    gathering.hand_over(peers, memory);
    return Rendezvous(std::unique_ptr<State>(new State{.rank = 0,
                                                       .launcher_process = launcher_process,
                                                       .memory = std::move(memory),
                                                       .peers = std::move(peers),
                                                       .wake = std::move(wake),
                                                       .watcher = {}}));
  }
  std::vector<Peer> peers(1);
  peers[0].socket = find_rank_0(world, path, deadline, settings);
  peers[0].rank = 0;
  peers[0].pid = peer_of(peers[0].socket.get()).value_or(0);
  SharedMemory memory = ask_for_memory(peers[0].socket.get(), world, identity, settings.timeout_s);
  return Rendezvous(std::unique_ptr<State>(new State{.rank = world.rank,
                                                     .launcher_process = launcher_process,
                                                     .memory = std::move(memory),
                                                     .peers = std::move(peers),
                                                     .wake = std::move(wake),
                                                     .watcher = {}}));
}

const SharedMemory& Rendezvous::memory() const { return state_->memory; }
const LauncherProcess& Rendezvous::launcher_process() const { return state_->launcher_process; }

void Rendezvous::watch(Team team) {
  team.set_pid(state_->rank, getpid());
  state_->watcher = start_without_signals([state = state_.get(), team] { state->watch(team); });
}

void Rendezvous::goodbye() noexcept {
  for (const Peer& p : state_->peers) send_message(p.socket.get(), bytes_of(kGoodbye));
}

bool tell_early_failure(const World& world, std::string_view why,
                        const RendezvousSettings& settings) noexcept {
  try {
    const Clock::time_point deadline = in(settings.timeout_s);
    const auto path = path_of(world, settings);
    if (world.rank == 0) {
      Listener listener(path, settings.timeout_s);
      Gathering(world, {}).refuse(listener, deadline, failed_early(world, 0, getpid(), why));
      return false;
    }
    const Descriptor rank_0 = find_rank_0(world, path, deadline, settings);
    send_message(rank_0.get(), bytes_of(hello_of(world, {}, why)));
    Answer same;
    put_text(same.reason, failed_early(world, 0, peer_of(rank_0.get()).value_or(0), why));
    return answer_of(rank_0.get(), deadline) == same.reason.data();
  } catch (const std::exception&) {  // nobody is left to be told, or there is no way to reach them
    return false;
  }
}

int run_joined(Rendezvous& rendezvous, Team team, int rank, const std::function<int()>& body,
               const std::function<void()>& leave) {
  const StopSignals stop(team.stop_word());
  rendezvous.watch(team);
  const int code = run_rank(team, rank, [&] {
    const Heartbeat heartbeat(team, rank, rendezvous.launcher_process());
    return body();
  });
  const std::string reason = code == 0 ? "" : team.reason();
  if (!reason.empty() && team.claim_message()) print_stderr("dptrain: {}\n", reason);
  rendezvous.goodbye();
  if (leave) leave();
  return code;
}

}  // namespace dpt
