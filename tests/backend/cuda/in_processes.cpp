#include "backend/cuda/in_processes.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <exception>

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "comm/child.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;

struct Running {
  std::string name, text;
  pid_t pid;
  int pipe;
  Clock::time_point until;
};

Running start(const std::string& name, int seconds,
              const std::function<void(const std::string&, const WriteLine&)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) fail(Fault::failed, "no pipe for {}", name);
  flush_all();
  const pid_t pid = fork();
  if (pid < 0) fail(Fault::failed, "no process for {}", name);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGTERM})
      std::signal(signal, SIG_DFL);  // not the test program's handlers
    const WriteLine write = [&](const std::string& line) {
      const std::string bytes = line + "\n";
      if (::write(ends[1], bytes.data(), bytes.size()) < 0) _exit(1);
    };
    int code = 0;
    try {
      body(name, write);
    } catch (const std::exception& e) {
      write(std::string("\x01") + e.what());
      code = 1;
    }
    flush_all();
    _exit(code);  // not the parent's destructors
  }
  ::close(ends[1]);
  return {name, "", pid, ends[0], Clock::now() + std::chrono::seconds(seconds)};
}

// Takes what was written; false: there will be no more.
bool read_some(Running& r) {
  char bytes[4096];
  const ssize_t n = ::read(r.pipe, bytes, sizeof bytes);
  if (n > 0) r.text.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

Piece finish(Running& r, const std::string& problem) {
  int status = 0;
  waitpid(r.pid, &status, 0);
  ::close(r.pipe);
  Piece out{r.name, {}, problem};
  for (size_t at = 0; at < r.text.size();) {
    const size_t end = std::min(r.text.find('\n', at), r.text.size());
    std::string line = r.text.substr(at, end - at);
    if (line.starts_with('\x01'))
      out.problem = line.substr(1);
    else if (!line.empty())
      out.lines.push_back(std::move(line));
    at = end + 1;
  }
  if (!out.problem.empty()) return out;
  if (WIFSIGNALED(status))
    out.problem =
        fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0)
    out.problem = fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return out;
}

}  // namespace

void in_processes(const std::vector<std::string>& names, int jobs, int seconds,
                  const std::function<void(const std::string&, const WriteLine&)>& body,
                  const std::function<void(const Piece&)>& ended) {
  std::deque<Running> running;
  size_t next = 0;
  while (next < names.size() || !running.empty()) {
    while (next < names.size() && std::ssize(running) < jobs)
      running.push_back(start(names[next++], seconds, body));
    std::vector<pollfd> waits;
    for (const Running& r : running) waits.push_back({r.pipe, POLLIN, 0});
    ::poll(waits.data(), waits.size(), 100);
    for (size_t i = running.size(); i-- > 0;) {
      Running& r = running[i];
      std::string problem;
      if (waits[i].revents != 0) {
        if (read_some(r)) continue;
      } else {
        if (Clock::now() < r.until) continue;
        kill(r.pid, SIGKILL);
        problem = fmt::format("not done after {} s", seconds);
      }
      ended(finish(r, problem));
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace dpt
