#include "base/stack.h"

#include <algorithm>

#include <pthread.h>
#include <sys/resource.h>

#include "base/fail.h"
#include "base/units.h"

namespace dpt {

void prepare_stacks() {
  constexpr rlim_t kWanted = 8 * kMiB, kLeast = kMiB;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kWanted) {
    rlimit raised = limit;
    raised.rlim_cur = std::min(kWanted, limit.rlim_max);
    // The kernel grows the stack up to it.
    if (setrlimit(RLIMIT_STACK, &raised) == 0) limit = raised;
    if (limit.rlim_cur < kLeast)
      fail(Fault::memory,
           "the stack is limited to {} KiB, and dptrain needs {} KiB; raise the limit with ulimit "
           "-s",
           limit.rlim_cur / kKiB, kLeast / kKiB);
  }
  pthread_attr_t threads;
  if (pthread_attr_init(&threads) != 0) return;
  if (pthread_attr_setstacksize(&threads, kWanted) == 0) pthread_setattr_default_np(&threads);
  pthread_attr_destroy(&threads);
}

}  // namespace dpt
