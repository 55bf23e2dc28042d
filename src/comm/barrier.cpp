#include "comm/barrier.h"

namespace dpt {
namespace {

constexpr uint32_t kBroken = 1, kNext = 2;

// A barrier that all workers reached counts as met, even if it was broken right afterwards.
WaitResult outcome(uint32_t before, uint32_t now) {
  return (now & ~kBroken) == before ? WaitResult::broken : WaitResult::done;
}

}  // namespace

WaitResult Barrier::arrive_and_wait(uint32_t workers, const WaitPolicy& policy) noexcept {
  const uint32_t before = round_.load(std::memory_order_acquire);
  if ((before & kBroken) != 0) return WaitResult::broken;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 != workers) return wait(before, policy);
  arrived_.store(0, std::memory_order_relaxed);
  round_.fetch_add(kNext, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex::wake_all(round_);
  return WaitResult::done;
}

WaitResult Barrier::wait(uint32_t before, const WaitPolicy& policy) noexcept {
  const uint32_t now =
      futex::wait(round_, sleepers_, policy, [&](uint32_t round) { return round != before; });
  return now == before ? WaitResult::late : outcome(before, now);
}

void Barrier::break_up() noexcept {
  round_.fetch_or(kBroken, std::memory_order_seq_cst);
  futex::wake_all(round_);
}

}  // namespace dpt
