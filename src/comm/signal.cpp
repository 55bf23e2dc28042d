#include "comm/signal.h"

namespace dpt {
namespace {

constexpr uint32_t kBroken = 1, kNext = 2;

bool reached(uint32_t word, uint32_t count) {
  return static_cast<int32_t>((word & ~kBroken) - kNext * count) >= 0;
}

}  // namespace

void Signal::post() noexcept {
  word_.fetch_add(kNext, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex::wake_all(word_);
}

WaitResult Signal::wait(uint32_t count, const WaitPolicy& policy) noexcept {
  const auto done = [&](uint32_t w) { return (w & kBroken) != 0 || reached(w, count); };
  const uint32_t now = futex::wait(word_, sleepers_, policy, done);
  if (reached(now, count)) return WaitResult::done;
  return (now & kBroken) != 0 ? WaitResult::broken : WaitResult::late;
}

void Signal::break_up() noexcept {
  word_.fetch_or(kBroken, std::memory_order_seq_cst);
  futex::wake_all(word_);
}

}  // namespace dpt
