// How much of the machine this process may use: cores and memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

// The cores to run on: the affinity mask, truncated to the control group's CPU quota (ceil(quota /
// period) cores). Never empty.
std::vector<int> usable_cores();

// The affinity mask alone, for choosing cores to pin to. Never empty. pid: 0 is this process.
std::vector<int> allowed_cores(int pid = 0);

// Bytes of memory that this process can still allocate: the least of what the machine, its control
// groups (version 1 and 2) and its limits on address space and data (`ulimit -v`, `ulimit -d`)
// leave. `root`: the folder that holds /proc and /sys; tests pass their own.
size_t usable_memory(const std::string& root = "");

// Throws Error{memory} if fewer than `bytes` are free: "WHAT needs 12 MiB, but 3 MiB are free;
// ADVICE". Call it before allocating memory whose size a spec or a file determines.
void need_memory(size_t bytes, std::string_view what, std::string_view advice);

// Asks for huge pages where the memory spans some, before it is used: random access then misses the
// TLB less often. Only a hint; a refusal costs speed.
void prefer_huge_pages(void* memory, size_t bytes);

// Returns whole pages of this memory to the system before it is freed. Its contents are lost.
void release_pages(std::span<std::byte> memory);

// Physical memory of a process, in bytes. Memory that several processes map is divided equally
// among them, so `own` can be summed over processes; file pages, such as the program's code, count
// fully for each.
struct MemoryUse {
  size_t own = 0;       // anonymous and shared memory
  size_t files = 0;     // pages of files
  size_t resident = 0;  // all pages, shared ones counted fully
  size_t peak = 0;      // the maximum of `resident` so far
};
// pid 0 is this process. Zeros if the system does not say. See proc(5), smaps_rollup.
MemoryUse memory_use(int pid = 0);

std::string cpu_name();  // "Intel(R) Xeon(R) Processor"; "unknown" if the system does not say

}  // namespace dpt
