#include "cli/process.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "cli/program.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

struct Status {
  pid_t pid = 0, parent = 0, group = 0;
  char state = '?';
};

// Of all processes that there are; see proc(5), /proc/PID/stat.
std::vector<Status> processes() {
  std::vector<Status> out;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename().string();
    if (!std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    const std::string stat = read_file(entry.path().string() + "/stat");
    const size_t after_name = stat.rfind(')');
    if (after_name == stat.npos) continue;
    Status s;
    std::istringstream words(stat.substr(after_name + 1));
    words >> s.state >> s.parent >> s.group;
    s.pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    out.push_back(s);
  }
  return out;
}

template <class F>
std::vector<pid_t> alive(F&& belongs) {
  std::vector<pid_t> out;
  for (const Status& s : processes())
    if (s.state != 'Z' && s.state != 'X' && belongs(s)) out.push_back(s.pid);
  return out;
}

// Tests must not depend on who started them: nothing of a launcher, and no terminal.
constexpr const char* kUnset[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TERM"};

[[noreturn]] void become(const std::vector<std::string>& arguments, const Variables& environment,
                         const std::string& folder, const std::string& out,
                         const std::string& err) {
  setpgid(0, 0);
  if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(127);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDERR_FILENO);
  for (const char* name : kUnset) unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::string program = DPT_PROGRAM;
  std::vector<std::string> words = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

}  // namespace

std::string program() { return DPT_PROGRAM; }

std::string beside_this_program(std::string_view library) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / library).string();
}

Process::Process(const std::vector<std::string>& arguments, const Variables& environment,
                 const std::string& folder) {
  pid_ = fork();
  require(pid_ >= 0, "a process");
  if (pid_ == 0) become(arguments, environment, folder, folder_.file("out"), folder_.file("err"));
  setpgid(pid_, pid_);  // whoever of the two comes first
}

Process::~Process() {
  send_group(SIGKILL);
  if (code_ < 0) waitpid(pid_, nullptr, 0);
}

void Process::send(int signal) const {
  if (code_ < 0) kill(pid_, signal);
}
void Process::send_group(int signal) const { kill(-pid_, signal); }

int Process::wait(double seconds) {
  becomes_true(seconds, [&] {
    int status = 0;
    if (code_ >= 0 || waitpid(pid_, &status, WNOHANG) != pid_) return code_ >= 0;
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  });
  return code_;
}

std::string Process::out() const { return read_file(folder_.file("out")); }
std::string Process::err() const { return read_file(folder_.file("err")); }

std::vector<pid_t> Process::children() const {
  return alive([&](const Status& s) { return s.parent == pid_; });
}
std::vector<pid_t> Process::group() const {
  return alive([&](const Status& s) { return s.group == pid_; });
}

Finished dptrain(const std::vector<std::string>& arguments, const Variables& environment,
                 const std::string& folder) {
  Process p(arguments, environment, folder);
  const int code = p.wait();
  return {code, p.out(), p.err()};
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace dpt
