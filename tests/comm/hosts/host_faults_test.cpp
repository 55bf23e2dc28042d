// Hosts whose processes are killed or suspended. Each host is a process of its own.
#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/hosts/pretended_hosts.h"

#if !defined(__SANITIZE_THREAD__)  // which does not follow processes

namespace dpt {
namespace {

using namespace std::chrono_literals;

// What one host does: connects, says so, and runs until its team is broken up or `end` is readable.
int be_host(const PretendedHost& p, int ready, int end) {
  try {
    SharedMemory memory = SharedMemory::create_private(Team::bytes({}));
    Team team = Team::create(memory.span(), {});
    team.set_progress(0, {.epoch = 2, .step = 40 + p.world.host, .phase = Phase::training});
    const auto channel = join(p);
    channel->watch(team);
    channel->all_gather("");
    std::this_thread::sleep_for(200ms);  // for a beat, which says where the host is
    if (write(ready, "r", 1) != 1) return 99;
    char byte = 0;
    while (!team.broken() && read(end, &byte, 1) < 0) std::this_thread::sleep_for(1ms);
    if (team.broken() && team.claim_message()) fmt::print(stderr, "[{}]\n", team.reason());
    const int code = team.exit_code();
    channel->goodbye();
    return code;
  } catch (const Error& e) {
    fmt::print(stderr, "[{}]\n", e.what());
    return static_cast<int>(e.fault());
  }
}

class Processes {
 public:
  explicit Processes(const std::vector<PretendedHost>& hosts) {
    REQUIRE(pipe(ready_.data()) == 0);
    REQUIRE(pipe2(end_.data(), O_NONBLOCK) == 0);
    std::fflush(nullptr);
    for (size_t h = 0; h < hosts.size(); ++h) {
      std::array<int, 2> out{};
      REQUIRE(pipe(out.data()) == 0);
      pids.push_back(fork());
      if (pids.back() == 0) {
        for (const int s : {SIGINT, SIGTERM, SIGABRT}) std::signal(s, SIG_DFL);
        alarm(60);
        dup2(out[1], STDERR_FILENO);
        close(end_[1]);
        const int code = be_host(hosts[h], ready_[1], end_[0]);
        std::fflush(nullptr);
        _exit(code);
      }
      close(out[1]);
      outputs_.push_back(out[0]);
    }
    char byte = 0;
    for (size_t h = 0; h < hosts.size(); ++h) REQUIRE(read(ready_[0], &byte, 1) == 1);
  }
  ~Processes() {
    for (const int fd : outputs_) close(fd);
    for (const int fd : {ready_[0], ready_[1], end_[0]}) close(fd);
    if (end_[1] >= 0) close(end_[1]);
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void end() {
    close(end_[1]);
    end_[1] = -1;
  }
  // What the host said, and its exit code, 1000 + signal if it was killed.
  std::string wait(size_t host) {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = read(outputs_[host], buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<size_t>(n));
    int status = 0;
    waitpid(pids[host], &status, 0);
    return fmt::format("{}{}", text,
                       WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status));
  }

  std::vector<pid_t> pids;

 private:
  std::array<int, 2> ready_{}, end_{};
  std::vector<int> outputs_;
};

// silence_s: long where a host that other programs keep from running must not count as silent
std::vector<PretendedHost> quick_hosts(double silence_s = 60) {
  auto hosts = pretended_hosts({1, 1, 1});
  for (PretendedHost& p : hosts)
    p.settings.channel = {.beat_s = 0.02, .silence_s = silence_s, .look_s = 0.01};
  return hosts;
}

TEST_CASE("hosts that end as they should leave with code 0") {
  Processes processes(quick_hosts());
  processes.end();
  for (const size_t h : {0U, 1U, 2U}) CHECK(processes.wait(h) == "0");
}

TEST_CASE("a killed host ends the run on all others with one message each") {
  for (const size_t killed : {0U, 2U}) {
    Processes processes(quick_hosts());
    kill(processes.pids[killed], SIGKILL);
    CHECK(processes.wait(killed) == "1009");
    for (size_t h = 0; h < 3; ++h) {
      if (h == killed) continue;
      const std::string text = processes.wait(h);
      CAPTURE(text);
      // Who notices it is as far as the killed host, or further.
      const size_t step = killed == 0 ? h : killed;
      CHECK(text.starts_with(fmt::format(
          "[rank {0} on host {0} (host{1}) ended unexpectedly at epoch 2, step 4{2}: ", killed,
          killed == 0 ? 'a' : 'c', step)));
      CHECK(text.ends_with("]\n6"));
      CHECK(text.find('[', 1) == std::string::npos);
    }
  }
}

TEST_CASE("a suspended host is silent, and ends the run; its own process then hears why") {
  for (const size_t stopped : {0U, 1U}) {
    Processes processes(quick_hosts(2));
    kill(processes.pids[stopped], SIGSTOP);
    for (size_t h = 0; h < 3; ++h)
      if (h != stopped)
        CHECK(processes.wait(h) ==
              fmt::format("[rank {0} on host {0} (host{1}) has been silent for 2 s at epoch 2, "
                          "step 4{2}: its process is suspended, or its machine or the network has "
                          "failed]\n6",
                          stopped, stopped == 0 ? 'a' : 'b', stopped == 0 ? h : stopped));
    kill(processes.pids[stopped], SIGCONT);
    const std::string text = processes.wait(stopped);
    CAPTURE(text);
    CHECK(text.ends_with("]\n6"));
  }
}

TEST_CASE("time in which all hosts are suspended does not count") {
  Processes processes(quick_hosts(2));
  for (const pid_t pid : processes.pids) kill(pid, SIGSTOP);
  std::this_thread::sleep_for(3s);  // longer than the silence that ends a run
  for (const pid_t pid : processes.pids) kill(pid, SIGCONT);
  std::this_thread::sleep_for(200ms);
  processes.end();
  for (const size_t h : {0U, 1U, 2U}) CHECK(processes.wait(h) == "0");
}

}  // namespace
}  // namespace dpt

#endif
