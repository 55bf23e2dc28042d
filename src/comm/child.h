// Runs a function in a forked child process, whose memory and threads end with it.
#pragma once

#include <functional>

namespace dpt {

// Writes out buffered output of this process. Call it before fork(), or both processes print it.
void flush_all();

// Runs body() in a forked child and waits for it. Returns the child's exit code: the result of
// body, or 128 plus the signal that killed it. The child dies with this process, however that ends.
// Throws Error{rank} if no child can be started. REQUIRES: the process has one thread; body does
// not throw.
int run_in_child(const std::function<int()>& body);

}  // namespace dpt
