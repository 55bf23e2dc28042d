// What this process may use of the machine.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

// Numbers of the cores that this process may run on: its affinity mask, cut to what the control
// group's quota pays for (ceil of quota / period). Never empty.
std::vector<int> usable_cores();

// The affinity mask alone, for choosing cores to pin to. Never empty.
std::vector<int> allowed_cores();

// Bytes of memory that this process may still take: the least that the machine, its control groups
// (version 1 and 2) and its limits of address space and data (`ulimit -v`, `ulimit -d`) leave.
// `root`: the folder that holds /proc and /sys; tests have one of their own.
size_t usable_memory(const std::string& root = "");

// Throws Error{memory} where `bytes` more are not free: "WHAT needs 12 MiB, but 3 MiB are free;
// ADVICE". Call it before whatever a spec or a file decides the size of is allocated.
void need_memory(size_t bytes, std::string_view what, std::string_view advice);

// Bytes of physical memory that a process occupies. What several processes map counts for each of
// them in equal parts, so the sum over all that do is right; pages of files, such as the program's
// code, count in full for each.
struct MemoryUse {
  size_t own = 0;       // anonymous and shared memory
  size_t files = 0;     // pages of files
  size_t resident = 0;  // of both, as if nobody shared them
  size_t peak = 0;      // the most that this ever was
};
// pid: 0 is this process. Zeros where the system does not say; see proc(5), smaps_rollup.
MemoryUse memory_use(int pid = 0);

std::string cpu_name();  // "Intel(R) Xeon(R) Processor"; "unknown" where the system does not say

}  // namespace dpt
