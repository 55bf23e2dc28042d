// Measures the link between two processes over gloo, as `dptrain plan --link` takes it.
//
// link [ADDRESS ADDRESS [NAMESPACE NAMESPACE]]: numeric addresses of both, 127.0.0.1 and 127.0.0.2
// by default, and the network namespaces (ip netns) in which they are. Both send and receive at the
// same time, as hosts do. Prints "BANDWIDTH,LATENCY,0us": with one other host, the time of its
// message is a part of the latency.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/median.h"
#include "base/units.h"
#include "comm/links/load.h"

namespace dpt {
namespace {

constexpr size_t kSmall = 64, kLarge = 2 * kMiB;
constexpr int kRounds = 300, kLargeRounds = 30;

void pin(int process) {
  cpu_set_t allowed, mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof allowed, &allowed);
  const int wanted = process % CPU_COUNT(&allowed);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == wanted) CPU_SET(cpu, &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

void enter(const std::string& name) {
  const int file = open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0)
    fail(Fault::device, "cannot enter the network namespace {}", name);
  close(file);
}

// What both processes tell each other while they connect.
std::vector<std::string> exchange(int socket, int process, const std::string& own) {
  std::string theirs(4096, '\0');
  if (send(socket, own.data(), own.size(), 0) < 0) fail(Fault::rank, "the other process is gone");
  const ssize_t got = recv(socket, theirs.data(), theirs.size(), 0);
  if (got <= 0) fail(Fault::rank, "the other process is gone");
  theirs.resize(static_cast<size_t>(got));
  return process == 0 ? std::vector{own, theirs} : std::vector{theirs, own};
}

// Seconds until both have sent and received so many bytes: the median of some rounds.
double exchange_seconds(Link& link, size_t bytes, int rounds) {
  std::vector<std::byte> from(bytes), to(bytes);
  std::vector<double> all;
  const int peer = 1 - link.host();
  for (int i = -rounds / 10; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const Link::Request receives = link.receive(peer, 1, to), sends = link.send(peer, 1, from);
    link.wait(receives);
    link.wait(sends);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i >= 0) all.push_back(took.count());
  }
  return median(all);
}

void measure(int process, int socket, const std::vector<std::string>& words) {
  pin(process);
  const auto at = static_cast<size_t>(process);
  if (words.size() == 4) enter(words[2 + at]);
  const auto link = link_module("gloo").connect(
      {.host = process,
       .hosts = 2,
       .address = words[at],
       .timeout_s = 20,
       .all_gather = [=](const std::string& own) { return exchange(socket, process, own); }});
  const double small = exchange_seconds(*link, kSmall, kRounds);
  const double large = exchange_seconds(*link, kLarge, kLargeRounds);
  if (process == 0)
    fmt::print("{:.4g}GB/s,{:.1f}us,0us\n", 1e-9 * (kLarge - kSmall) / (large - small),
               1e6 * small);
  exchange(socket, process, "end");
}

}  // namespace
}  // namespace dpt

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) words = {"127.0.0.1", "127.0.0.2"};
  if (words.size() != 2 && words.size() != 4) {
    fmt::print(stderr, "usage: link [ADDRESS ADDRESS [NAMESPACE NAMESPACE]]\n");
    return 1;
  }
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return 1;
  const pid_t child = fork();
  const int process = child == 0 ? 1 : 0;
  close(sockets[1 - process]);
  try {
    dpt::measure(process, sockets[process], words);
  } catch (const std::exception& e) {
    fmt::print(stderr, "link: {}\n", e.what());
    return 1;
  }
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
