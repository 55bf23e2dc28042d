// The stacks of this process, whatever limit it was started with (ulimit -s).
#pragma once

namespace dpt {

// Raises the limit of the calling thread's stack, as far as that is allowed, and gives all threads
// that are started later 8 MiB. Throws Error{memory} where the limit stays below 1 MiB, at which
// layers and kernels could overflow it. REQUIRES: called by the main thread, before any other is
// started.
void prepare_stacks();

}  // namespace dpt
