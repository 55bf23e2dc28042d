#include "base/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include <sched.h>

namespace dpt {
namespace {

// The files of control groups are one line: "max 100000", "200000 100000", "max", "4096".
bool read_line(const std::string& path, std::string& line) {
  std::ifstream in(path);
  return static_cast<bool>(std::getline(in, line));
}

// The folder of this process's control group (version 2), and those above it.
std::vector<std::string> control_groups() {
  std::vector<std::string> out;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("0::")) continue;
    for (std::string path = line.substr(3); !path.empty(); path.resize(path.find_last_of('/')))
      out.push_back("/sys/fs/cgroup" + path);
  }
  out.push_back("/sys/fs/cgroup");
  return out;
}

double cpu_quota() {
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& group : control_groups()) {
    std::string line;
    if (!read_line(group + "/cpu.max", line)) continue;
    std::istringstream in(line);
    double quota = 0, period = 0;
    if (in >> quota >> period && period > 0) least = std::min(least, quota / period);
  }
  return least;
}

}  // namespace

std::vector<int> allowed_cores() {
  cpu_set_t set;
  std::vector<int> out;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) out.push_back(c);
  if (out.empty()) out.push_back(0);
  return out;
}

std::vector<int> usable_cores() {
  std::vector<int> out = allowed_cores();
  const double quota = std::ceil(cpu_quota());
  if (quota >= 1 && quota < static_cast<double>(out.size())) out.resize(static_cast<size_t>(quota));
  return out;
}

size_t usable_memory() {
  size_t bytes = std::numeric_limits<size_t>::max();
  std::ifstream in("/proc/meminfo");
  for (std::string key, rest; in >> key && std::getline(in, rest);)
    if (key == "MemAvailable:") bytes = std::stoull(rest) * 1024;
  for (const std::string& group : control_groups()) {
    std::string limit, used;
    if (!read_line(group + "/memory.max", limit) || !read_line(group + "/memory.current", used))
      continue;
    if (limit == "max") continue;
    const size_t most = std::stoull(limit), now = std::stoull(used);
    bytes = std::min(bytes, most > now ? most - now : 0);
  }
  return bytes;
}

MemoryUse memory_use(int pid) {
  const std::string folder = pid == 0 ? "/proc/self" : "/proc/" + std::to_string(pid);
  MemoryUse out;
  for (const char* name : {"/smaps_rollup", "/status"}) {
    std::ifstream in(folder + name);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string key;
      size_t kib = 0;
      if (!(words >> key >> kib)) continue;
      if (key == "Pss_Anon:" || key == "Pss_Shmem:") out.own += kib * 1024;
      if (key == "RssFile:") out.files = kib * 1024;
      if (key == "VmRSS:") out.resident = kib * 1024;
      if (key == "VmHWM:") out.peak = kib * 1024;
    }
  }
  return out;
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

}  // namespace dpt
