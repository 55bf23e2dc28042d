// Makes the stacks large enough, whatever limit (ulimit -s) the process was started with.
#pragma once

namespace dpt {

// Raises the stack limit of the main thread to 8 MiB, as far as permitted, and sets the stack size
// of threads started later to 8 MiB. Throws Error{memory} if the main thread's limit stays below 1
// MiB, with which layers and kernels could overflow it. REQUIRES: called by the main thread before
// it starts others.
void prepare_stacks();

}  // namespace dpt
