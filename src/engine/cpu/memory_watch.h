// What CPU workers read and write, for tests that compare it with the bytes that `dptrain plan`
// prints (describe/traffic.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/program/plan.h"

namespace dpt {

class Buffers;
struct Session;
struct KernelArgs;

class MemoryWatch {
 public:
  virtual ~MemoryWatch() = default;
  // A worker's executor is made. buffers: of the first replica.
  virtual void opened(const Session& session, const Buffers& buffers, int worker) = 0;
  // The worker begins a step of the plan. Thread: the worker's, like all calls that follow.
  virtual void begin(int worker, const PlanStep& step) = 0;
  virtual void read(const void* data, size_t bytes) = 0;
  virtual void write(const void* data, size_t bytes) = 0;
  virtual void kernel(const KernelArgs& args) = 0;  // a kernel runs
  // Rows [begin, end) of the result of a kernel with makes_rows.
  virtual void rows(const KernelArgs& args, size_t instruction, int64_t begin, int64_t end) = 0;
};

// Null: nobody watches. Set it before the workers start.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): only tests set it
inline MemoryWatch* memory_watch = nullptr;

}  // namespace dpt
