#include "base/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/fail.h"
#include "base/units.h"

namespace dpt {
namespace {

// Reads a control group's file, which has one line: "max 100000", "200000 100000", "max", "4096".
bool read_line(const std::string& path, std::string& line) {
  std::ifstream in(path);
  return static_cast<bool>(std::getline(in, line));
}

// The folder of this process's control group and its ancestors, in the hierarchy mounted at
// `mount`. In a container the path is often valid on the host only; then only the ancestors that
// exist count.
std::vector<std::string> with_parents(const std::string& mount, std::string path) {
  std::vector<std::string> out;
  for (; path.size() > 1; path.resize(path.find_last_of('/'))) out.push_back(mount + path);
  out.push_back(mount);
  return out;
}

// Parses /proc/self/cgroup, whose lines are "number:controllers:/path"; version 2 has one,
// "0::/path".
struct ControlGroups {
  std::vector<std::string> unified;  // version 2
  std::vector<std::string> memory;   // version 1, controller memory
  explicit ControlGroups(const std::string& root = "")
      : unified{root + "/sys/fs/cgroup"}, memory{root + "/sys/fs/cgroup/memory"} {
    std::ifstream in(root + "/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {
      const size_t first = line.find(':'), second = line.find(':', first + 1);
      if (second == line.npos) continue;
      const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
      const std::string path = line.substr(second + 1);
      if (controllers == ",,") unified = with_parents(unified.back(), path);
      if (controllers.find(",memory,") != line.npos) memory = with_parents(memory.back(), path);
    }
  }
};

// The number after a key in a file of lines "key number" or "key: number kB"; 0 if the key is
// missing.
size_t number_after(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  for (std::string word, rest; in >> word && std::getline(in, rest);) {
    size_t number = 0;
    if (word == key && std::istringstream(rest) >> number) return number;
  }
  return 0;
}

size_t number_in(const std::string& path, size_t otherwise) {
  std::string line;
  size_t number = 0;
  return read_line(path, line) && std::istringstream(line) >> number ? number : otherwise;
}

size_t left_of(size_t limit, size_t used) { return limit > used ? limit - used : 0; }

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// Bytes left under the tightest limit of the groups. Inactive file pages count as free, since the
// kernel reclaims them when memory is needed.
size_t left_in_groups(const std::vector<std::string>& groups, const char* limit, const char* used,
                      std::string_view reclaimable) {
  size_t least = kNoLimit;
  for (const std::string& group : groups) {
    const size_t most = number_in(group + limit, kNoLimit);  // "max" is not a number: no limit
    if (most == kNoLimit) continue;
    const size_t pages = number_after(group + "/memory.stat", reclaimable);
    least = std::min(least, left_of(most, left_of(number_in(group + used, 0), pages)));
  }
  return least;
}

// Bytes left under a resource limit of this process; `key` names the current use in
// /proc/self/status.
size_t left_of_limit(auto resource, const std::string& root, std::string_view key) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return left_of(limit.rlim_cur, number_after(root + "/proc/self/status", key) * kKiB);
}

double cpu_quota() {
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& group : ControlGroups().unified) {
    std::string line;
    if (!read_line(group + "/cpu.max", line)) continue;
    std::istringstream in(line);
    double quota = 0, period = 0;
    if (in >> quota >> period && period > 0) least = std::min(least, quota / period);
  }
  return least;
}

}  // namespace

std::vector<int> allowed_cores(int pid) {
  cpu_set_t set;
  std::vector<int> out;
  if (sched_getaffinity(pid, sizeof set, &set) == 0)
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

size_t usable_memory(const std::string& root) {
  const size_t machine = number_after(root + "/proc/meminfo", "MemAvailable:");
  const ControlGroups groups(root);
  return std::min(
      {machine > 0 ? machine * kKiB : kNoLimit,
       left_in_groups(groups.unified, "/memory.max", "/memory.current", "inactive_file"),
       left_in_groups(groups.memory, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                      "total_inactive_file"),
       left_of_limit(RLIMIT_AS, root, "VmSize:"), left_of_limit(RLIMIT_DATA, root, "VmData:")});
}

void need_memory(size_t bytes, std::string_view what, std::string_view advice) {
  if (const size_t free = usable_memory(); bytes > free)
    fail(Fault::memory, "{} needs {:.0f} MiB, but {:.0f} MiB are free; {}", what,
         static_cast<double>(bytes) / kMiB, static_cast<double>(free) / kMiB, advice);
}

void prefer_huge_pages(void* memory, size_t bytes) {
  auto* const begin = static_cast<std::byte*>(memory);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kPage;
  if (bytes >= kHugePage) ::madvise(begin + before, bytes - before, MADV_HUGEPAGE);
}

void release_pages(std::span<std::byte> memory) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t before = -reinterpret_cast<uintptr_t>(memory.data()) % page;
  if (memory.size() < before + page) return;
  ::madvise(memory.data() + before, (memory.size() - before) / page * page, MADV_DONTNEED);
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
      if (key == "Pss_Anon:" || key == "Pss_Shmem:") out.own += kib * kKiB;
      if (key == "RssFile:") out.files = kib * kKiB;
      if (key == "VmRSS:") out.resident = kib * kKiB;
      if (key == "VmHWM:") out.peak = kib * kKiB;
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
