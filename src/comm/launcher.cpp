#include "comm/launcher.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "comm/child.h"
#include "comm/heartbeat.h"
#include "comm/workers.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kRankLost = static_cast<int>(Fault::rank);

void say(const std::string& message) { print_stderr("dptrain: {}\n", message); }

int threads_of_this_process() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::directory_iterator tasks("/proc/self/task", error);
  return error ? 1 : static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// Runs in the child. Makes it die with the launcher, then checks whether the launcher is already
// gone. On systems without PR_SET_PDEATHSIG the child's heartbeat ends it.
void die_with(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(kRankLost);
}

std::string in_words(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal)
                         : fmt::format("signal {} (SIG{})", signal, name);
}

struct Child {
  int rank = 0;
  pid_t pid = 0;
  int descriptor = -1;  // a pidfd, readable once the child has ended; -1: not supported
  bool running = false;
  int code = 0;
};

class Launch {
 public:
  Launch(Team team, const LaunchSettings& settings) : team_(team), settings_(settings) {}
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  void start(int rank, const std::function<int(int rank)>& body);
  int wait_for_all();

 private:
  [[noreturn]] void be_rank(int rank, const std::function<int(int rank)>& body);
  void sleep_until_news();
  void collect(Child& child);
  void look_at_team();
  void judge(Child& child, int status);
  void hasten();
  void signal_all(int signal);
  bool any_running() const;
  int result();

  Team team_;
  LaunchSettings settings_;
  pid_t self_ = getpid();
  std::vector<Child> children_;
  bool ended_ = false;  // some rank has ended
  bool failing_ = false, terminated_ = false, killed_ = false;
  Clock::time_point whole_at_ = Clock::now();  // when the team was last seen unbroken
  Clock::time_point failed_at_;
};

Launch::~Launch() {
  signal_all(SIGKILL);  // if a later child could not be started
  for (Child& c : children_) {
    if (c.running && !killed_) waitpid(c.pid, nullptr, 0);
    if (c.descriptor >= 0) close(c.descriptor);
  }
}

void Launch::start(int rank, const std::function<int(int rank)>& body) {
  flush_all();  // or the child would print it again
  const pid_t pid = fork();
  if (pid < 0)
    fail(Fault::rank, "cannot start rank {} of {}: {}; use fewer devices", rank,
         team_.shape().ranks, std::generic_category().message(errno));
  if (pid == 0) be_rank(rank, body);
  team_.set_pid(rank, pid);
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  children_.push_back({.rank = rank, .pid = pid, .descriptor = descriptor, .running = true});
}

void Launch::be_rank(int rank, const std::function<int(int rank)>& body) {
  for (const Child& c : children_)
    if (c.descriptor >= 0) close(c.descriptor);
  die_with(self_);
  team_.set_pid(rank, getpid());
  const int code = run_rank(team_, rank, [&] {
    const Heartbeat heartbeat(team_, rank, {.pid = self_, .name = {}, .must_live = true});
    return body(rank);
  });
  flush_all();
  _exit(code);
}

int Launch::wait_for_all() {
  while (any_running()) {
    sleep_until_news();
    for (Child& c : children_) collect(c);
    look_at_team();
    if (failing_) hasten();
    if (killed_ &&
        Clock::now() - failed_at_ > milliseconds(settings_.grace_ms + settings_.terminate_ms + 400))
      break;  // stuck in the kernel; it dies with this process
  }
  return result();
}

void Launch::sleep_until_news() {
  std::vector<pollfd> news;
  int limit_ms = failing_ ? 10 : 1000;  // the team may break up without any rank ending
  for (const Child& c : children_) {
    if (!c.running) continue;
    if (c.descriptor < 0) limit_ms = 10;  // no pidfd before Linux 5.3
    news.push_back({.fd = c.descriptor, .events = POLLIN, .revents = 0});
  }
  poll(news.data(), news.size(), limit_ms);  // interrupted by signals too, which is harmless
}

void Launch::collect(Child& child) {
  int status = 0;
  if (!child.running || waitpid(child.pid, &status, WNOHANG) != child.pid) return;
  child.running = false;
  judge(child, status);
  ended_ = true;
}

// The run has failed once the team is broken up and a rank has ended, or hang_ms have passed.
void Launch::look_at_team() {
  if (!team_.broken()) whole_at_ = Clock::now();
  const bool hangs = Clock::now() - whole_at_ > milliseconds(settings_.hang_ms);
  if (failing_ || !team_.broken() || (!ended_ && !hangs)) return;
  failing_ = true;
  failed_at_ = Clock::now();
}

// Handles a child's end. Breaks up the team if the child failed and has not done so itself.
void Launch::judge(Child& child, int status) {
  const std::string name = team_.name_of(child.rank), where = team_.where_is(child.rank);
  // The reader of our output closed it. Like a program of one process, end without a message.
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) {
    child.code = 128 + SIGPIPE;
    if (team_.break_up(child.rank, "its output was closed", child.code, true))
      team_.claim_message(child.rank);  // nobody prints a message
    return;
  }
  if (WIFSIGNALED(status)) {
    child.code = kRankLost;
    team_.break_up(child.rank,
                   fmt::format("{} was killed by {} {}", name, in_words(WTERMSIG(status)), where));
    return;
  }
  child.code = WEXITSTATUS(status);
  if (child.code == 0) return;
  const int stop = team_.agreed_stop();
  if (stop != 0 && child.code == exit_code_of(stop)) return;
  team_.break_up(child.rank, fmt::format("{} exited with code {} {}", name, child.code, where),
                 child.code);
}

void Launch::hasten() {
  const auto since = Clock::now() - failed_at_;
  if (!terminated_ && since >= milliseconds(settings_.grace_ms)) {
    terminated_ = true;
    signal_all(SIGTERM);
  }
  if (!killed_ && since >= milliseconds(settings_.grace_ms + settings_.terminate_ms)) {
    killed_ = true;
    signal_all(SIGKILL);
  }
}

void Launch::signal_all(int signal) {
  for (const Child& c : children_)
    if (c.running) kill(c.pid, signal);
}

bool Launch::any_running() const {
  return std::any_of(children_.begin(), children_.end(), [](const Child& c) { return c.running; });
}

int Launch::result() {
  if (team_.broken()) {
    if (team_.claim_message(team_.broken_by()))  // all ranks are gone
      say(team_.reason() + "; the other ranks were stopped");
    // The rank that broke up the team may have ended with a more specific code.
    if (team_.exit_code() == kRankLost)
      for (const Child& c : children_)
        if (c.rank == team_.broken_by() && c.code > 0) return c.code;
    return team_.exit_code();
  }
  int code = 0;
  for (const Child& c : children_) code = std::max(code, c.code);
  return code;
}

}  // namespace

int launch(Team team, const std::function<int(int rank)>& body, const LaunchSettings& settings) {
  const StopSignals stop(team.stop_word());
  const int ranks = team.shape().ranks;
  if (ranks == 1) {
    team.set_pid(0, getpid());
    const int code = run_rank(team, 0, [&] { return body(0); });
    if (team.broken() && team.claim_message()) say(team.reason());  // workers that did not arrive
    return code;
  }
  require(threads_of_this_process() == 1, "ranks are started before any thread is");
  Launch run(team, settings);
  for (int rank = 0; rank < ranks; ++rank) run.start(rank, body);
  return run.wait_for_all();
}

}  // namespace dpt
