#include "report/sweep_runner.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/units.h"
#include "comm/child.h"
#include "engine/clock.h"
#include "train/run_folder.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPoll{20};
constexpr double kLockPatience =
    20;  // seconds; a run that another sweep left behind saves and ends

size_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<size_t>(size);
}

// Replaces the child process by dptrain. The process ends in order with its parent, however that
// ends. Signals of the terminal reach the parent alone, which passes them on.
// `mask`: the signals to block; until then, stop signals are blocked, so that none is lost in the
// parent's handler.
[[noreturn]] void become(std::vector<char*>& words, const char* log, pid_t parent,
                         const sigset_t& mask) {
  setpgid(0, 0);
  std::signal(SIGTERM, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (in < 0 || out < 0) _exit(1);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execv("/proc/self/exe", words.data());
  _exit(1);
}

}  // namespace

std::string log_file(const std::string& run) { return run + "/log.txt"; }

std::string failure_of(const std::string& run, int code, size_t from) {
  const auto first_with = [](const std::string& text, auto&& fits) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      if (fits(line)) return line;
    return std::string();
  };
  const auto is_error = [](const std::string& line) {
    return line.starts_with("dptrain: ") || line.find(": error: ") != line.npos;
  };
  std::string line;
  try {
    std::error_code error;
    if (fs::exists(failure_file(run), error)) {
      const std::string text = read_file(failure_file(run), kMiB);
      line = first_with(text, [](const std::string& l) { return !l.starts_with("exit code "); });
    }
    if (line.empty()) line = first_with(read_file(log_file(run), 64 * kMiB).substr(from), is_error);
  } catch (const std::exception&) {  // the code alone says that it failed
    line.clear();
  }
  if (line.starts_with("dptrain: ")) line.erase(0, 9);
  if (!line.empty()) return line;
  return code > 128 ? fmt::format("killed by signal {}", code - 128)
                    : fmt::format("ended with exit code {}", code);
}

struct SweepRunner::Child {
  size_t index = 0;
  pid_t pid = -1;
  int64_t epochs = 0;       // where it is to pause; 0: it is not
  size_t log_from = 0;      // size of its log when it began
  size_t metrics_read = 0;  // bytes of metrics.jsonl that were read
  bool stopped = false;     // has got SIGTERM
};

SweepRunner::SweepRunner(Sweep& sweep, std::vector<std::string> command, const SweepLimits& limits,
                         const std::atomic<int>& stop, SweepObserver observer)
    : sweep_(sweep),
      command_(std::move(command)),
      limits_(limits),
      stop_(stop),
      observer_(std::move(observer)) {}

SweepRunner::~SweepRunner() {
  for (const auto& child : children_) {
    kill(child->pid, SIGKILL);
    waitpid(child->pid, nullptr, 0);
  }
}

bool SweepRunner::fits(const SweepRun& run) const {
  if (children_.empty()) return true;
  if (limits_.jobs > 0) return std::ssize(children_) < limits_.jobs;
  int used = run.facts.cores;
  for (const auto& child : children_) used += sweep_.runs[child->index].facts.cores;
  return used <= limits_.cores;
}

void SweepRunner::start(size_t index, int64_t epochs) {
  SweepRun& run = sweep_.runs[index];
  const std::string folder = sweep_.folder_of(run), log = log_file(folder);
  make_folder(folder, "the run directory");
  const double began = now_s();
  while (is_locked(folder) && now_s() - began < kLockPatience && stop_ == 0)
    std::this_thread::sleep_for(kPoll);
  std::error_code error;
  fs::remove(failure_file(folder), error);
  std::vector<std::string> words = command_;
  for (std::string& o : run.point.overrides()) words.push_back(std::move(o));
  words.push_back("out=" + folder);
  if (fs::exists(folder + "/checkpoints", error)) {
    words.emplace_back("--resume");
    words.emplace_back("auto");
  }
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  auto child = std::make_unique<Child>(Child{.index = index, .epochs = epochs});
  child->log_from = size_of(log);
  flush_all();
  const pid_t parent = getpid();
  sigset_t stops, before;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stops, &before);
  child->pid = fork();
  if (child->pid == 0) become(arguments, log.c_str(), parent, before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child->pid < 0)
    fail(Fault::failed, "cannot start a process: {}", std::generic_category().message(errno));
  children_.push_back(std::move(child));
  run.state = SweepState::running;
  if (observer_.began) observer_.began(run);
}

// Reads what the run has added to metrics.jsonl. A run that continues has cut the file at its
// checkpoint: then it is read anew.
void SweepRunner::watch(Child& child) {
  SweepRun& run = sweep_.runs[child.index];
  const std::string path = sweep_.folder_of(run) + "/metrics.jsonl";
  const size_t size = size_of(path);
  // A run that continues has cut the file at its checkpoint, maybe unnoticed: a file is read anew
  // as long as that is cheap.
  constexpr size_t kCheap = kMiB;
  if (size != child.metrics_read && (size < child.metrics_read || size < kCheap))
    child.metrics_read = 0;
  if (size > child.metrics_read) {
    if (child.metrics_read == 0) run.numbers = {};
    std::ifstream in(path, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(child.metrics_read));
    for (std::string line; std::getline(in, line) && !in.eof();) {  // the last may be incomplete
      run.numbers.add(line);
      child.metrics_read += line.size() + 1;
    }
  }
  const bool pauses = child.epochs > 0 && run.numbers.epochs() >= child.epochs;
  if (child.stopped || !(stopping() || pauses || sweep_.reached(run))) return;
  kill(child.pid, SIGTERM);
  child.stopped = true;
}

bool SweepRunner::take_if_ended(Child& child) {
  int status = 0;
  if (waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  SweepRun& run = sweep_.runs[child.index];
  run.numbers = read_numbers(sweep_.folder_of(run));
  const bool asked = child.stopped && (code == 128 + SIGTERM || code == 128 + SIGINT);
  run.note.clear();
  if (code == 0) {
    run.state = SweepState::finished;
  } else if (!asked) {
    run.state = SweepState::failed;
    run.note = failure_of(sweep_.folder_of(run), code, child.log_from);
  } else if (sweep_.reached(run)) {
    run.state = SweepState::reached;
  } else {
    run.state = child.epochs > 0 && run.numbers.epochs() >= child.epochs ? SweepState::paused
                                                                         : SweepState::stopped;
  }
  return true;
}

// Takes the runs that have ended. Returns whether there were any.
bool SweepRunner::collect() {
  const size_t before = children_.size();
  for (size_t i = 0; i < children_.size();) {
    Child& child = *children_[i];
    watch(child);
    if (!take_if_ended(child)) {
      ++i;
      continue;
    }
    const SweepRun& run = sweep_.runs[child.index];
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    if (observer_.ended) observer_.ended(run);
  }
  return children_.size() < before;
}

// Starts the run if it is not done. Returns whether it is or runs now; false: no cores are free.
bool SweepRunner::start_if_needed(size_t index, int64_t epochs) {
  SweepRun& run = sweep_.runs[index];
  if (!run.has_ended() && sweep_.reached(run)) run.state = SweepState::reached;
  if (run.has_ended() || (epochs > 0 && run.numbers.epochs() >= epochs)) return true;
  if (!fits(run)) return false;
  const bool pauses = epochs > 0 && (run.facts.epochs == 0 || epochs < run.facts.epochs);
  start(index, pauses ? epochs : 0);
  return true;
}

void SweepRunner::train(std::span<const size_t> runs, int64_t epochs) {
  size_t next = 0;
  while (true) {
    bool changed = collect();
    while (!stopping() && next < runs.size() && start_if_needed(runs[next], epochs)) {
      ++next;
      changed = true;
    }
    if (changed && observer_.changed) observer_.changed();
    if (observer_.tick) observer_.tick();
    if (children_.empty() && (stopping() || next == runs.size())) return;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace dpt
