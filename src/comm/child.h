// A piece of work in a process of its own, whose memory and threads end with it.
#pragma once

#include <functional>

namespace dpt {

// What this process has printed and not yet written: before a fork, or both would print it.
void flush_all();

// Runs body() in a forked child and waits for it. Returns its exit code: what body returns, or 128
// plus the signal that killed it. The child dies with this process, however that ends.
// REQUIRES: called from a process of one thread; body throws nothing. Errors: Error{rank}.
int run_in_child(const std::function<int()>& body);

}  // namespace dpt
