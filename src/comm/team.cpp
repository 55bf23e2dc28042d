#include "comm/team.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include <sched.h>

#include "base/fail.h"
#include "base/units.h"
#include "comm/barrier.h"
#include "comm/signal.h"

namespace dpt {

// A worker's own words, on cache lines of their own.
struct alignas(kDestructiveInterference) Team::WorkerSlot {
  std::atomic<uint64_t> barriers = 0;       // of the team that it has come to
  std::atomic<uint64_t> rank_barriers = 0;  // of its rank
  std::atomic<int64_t> epoch = 0;
  std::atomic<int64_t> step = 0;
  std::atomic<Phase> phase = Phase::starting;
  uint32_t visits = 0;  // calls of barrier_among(); read by this worker only
  Signal done, come;
};

// What belongs to a rank.
struct alignas(kDestructiveInterference) Team::RankSlot {
  Barrier barrier;
  std::atomic<int> pid = 0;
  std::atomic<uint32_t> beats = 0;
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what is written often lies apart
struct alignas(kDestructiveInterference) Team::Header {
  // Why the team ended. One atomic word (so the alignment), since the rank that writes it may be
  // killed at any moment.
  struct alignas(uint64_t) Break {
    int32_t rank = -1;  // the rank to blame; -1: the team is whole
    int32_t code = 0;
  };
  enum Message : uint32_t { open, promised, told };

  std::atomic<uint64_t> magic = 0;  // written last
  TeamShape shape;
  WaitPolicy policy;  // of workers waiting for each other
  double timeout_s = 0, notice_s = 0;
  int first_rank = 0;
  char host[kLongestHost + 1] = {};
  Barrier barrier;

  std::atomic<Break> broken = Break();
  static_assert(std::atomic<Break>::is_always_lock_free);
  std::atomic<bool> has_reason = false;  // `reason` has been written
  std::atomic<uint32_t> message = Message::open;
  char reason[kLongestReason + 1] = {};

  alignas(kDestructiveInterference) std::atomic<int> stop_asked = 0;
  alignas(kDestructiveInterference) std::atomic<int> stop_agreed = 0;
  std::atomic<uint64_t> stop_barrier = 0;  // the first after which it holds
  std::atomic<int64_t> pause_after = -1;   // steps
};

namespace {

constexpr uint64_t kMagic = 0x315f6d6165547044;  // "DpTeam_1"

size_t whole_pages(size_t bytes) { return rounded_up(bytes, kPage); }

int cores_of_this_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0
             ? CPU_COUNT(&set)
             : static_cast<int>(std::thread::hardware_concurrency());
}

std::string_view words_of(Phase phase) {
  switch (phase) {
    case Phase::starting:
      return "while starting";
    case Phase::training:
      return "";
    case Phase::evaluating:
      return "while evaluating";
    case Phase::saving:
      return "while saving";
    case Phase::finished:
      return "after its last step";
    case Phase::connecting:
      return "while connecting to other hosts";
  }
  return "";
}

}  // namespace

std::string position_text(const Progress& p) {
  if (p.epoch == 0 && p.step == 0)
    return std::string(words_of(p.phase).empty() ? "before its first step" : words_of(p.phase));
  const std::string_view phase = words_of(p.phase);
  return fmt::format("at epoch {}, step {}{}{}", p.epoch, p.step, phase.empty() ? "" : " ", phase);
}

Team::Team(std::byte* header) : header_(reinterpret_cast<Header*>(header)) {}

Team::RankSlot& Team::rank_slot(int rank) const {
  return reinterpret_cast<RankSlot*>(header_ + 1)[rank];
}

Team::WorkerSlot& Team::worker_slot(int worker) const {
  return reinterpret_cast<WorkerSlot*>(&rank_slot(header_->shape.ranks))[worker];
}

size_t Team::bytes(const TeamShape& shape) {
  return whole_pages(sizeof(Header) + static_cast<size_t>(shape.ranks) * sizeof(RankSlot) +
                     static_cast<size_t>(shape.workers()) * sizeof(WorkerSlot));
}

Team Team::create(std::span<std::byte> header, const TeamShape& shape,
                  const TeamSettings& settings) {
  require(shape.ranks >= 1 && shape.workers_per_rank >= 1, "a team has at least one worker");
  require(header.size() >= bytes(shape), "the team's header needs more bytes");
  require(reinterpret_cast<uintptr_t>(header.data()) % alignof(Header) == 0,
          "the team's header lies at a multiple of 128");
  Team team(header.data());
  Header* const h = std::construct_at(team.header_);
  h->shape = shape;
  for (int r = 0; r < shape.ranks; ++r) std::construct_at(&team.rank_slot(r));
  for (int w = 0; w < shape.workers(); ++w) std::construct_at(&team.worker_slot(w));
  const int cores = settings.cores > 0 ? settings.cores : cores_of_this_process();
  const double spin_us = shape.workers() <= cores ? settings.spin_us : 0;
  h->policy = {.spin_us = spin_us, .timeout_s = settings.stuck_s};
  h->timeout_s = settings.timeout_s;
  h->notice_s = settings.notice_s;
  h->first_rank = settings.first_rank;
  settings.host.copy(h->host, kLongestHost);
  h->magic.store(kMagic, std::memory_order_release);
  return team;
}

Team Team::attach(std::span<std::byte> header) {
  Team team(header.data());
  if (header.size() < sizeof(Header) ||
      team.header_->magic.load(std::memory_order_acquire) != kMagic ||
      header.size() < bytes(team.shape()))
    fail(Fault::rank, "the shared memory from rank 0 was not set up by this build of dptrain");
  return team;
}

const TeamShape& Team::shape() const { return header_->shape; }

WorkerInfo Team::info(int worker) const {
  const TeamShape& s = header_->shape;
  return {.worker = worker,
          .workers = s.workers(),
          .rank = worker / s.workers_per_rank,
          .ranks = s.ranks,
          .workers_per_rank = s.workers_per_rank};
}

void Team::barrier(int worker) { barrier(worker, header_->policy); }

void Team::barrier_without_limit(int worker) {
  barrier(worker, {.spin_us = header_->policy.spin_us});
}

void Team::barrier(int worker, const WaitPolicy& policy) {
  std::atomic<uint64_t>& mine = worker_slot(worker).barriers;
  mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const WaitResult end =
      header_->barrier.arrive_and_wait(static_cast<uint32_t>(header_->shape.workers()), policy);
  if (end != WaitResult::done) give_up(worker, end == WaitResult::late, true);
}

void Team::rank_barrier(int worker) {
  const int per_rank = header_->shape.workers_per_rank;
  std::atomic<uint64_t>& mine = worker_slot(worker).rank_barriers;
  mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const WaitResult end =
      rank_slot(worker / per_rank)
          .barrier.arrive_and_wait(static_cast<uint32_t>(per_rank), header_->policy);
  if (end != WaitResult::done) give_up(worker, end == WaitResult::late, false);
}

void Team::post(int worker) noexcept { worker_slot(worker).done.post(); }

void Team::wait_for(int other, uint32_t count) {
  const WaitResult end = worker_slot(other).done.wait(count, header_->policy);
  if (end != WaitResult::done) give_up_on(other, end == WaitResult::late);
}

void Team::barrier_among(int worker, std::span<const int> workers) {
  const uint32_t count = ++worker_slot(worker).visits;
  worker_slot(worker).come.post();
  for (int other : workers) {
    const WaitResult end = worker_slot(other).come.wait(count, header_->policy);
    if (end != WaitResult::done) give_up_on(other, end == WaitResult::late);
  }
}

void Team::give_up_on(int other, bool late) const {
  Team team = *this;
  const int rank = other / shape().workers_per_rank;
  if (late)
    team.break_up(rank,
                  fmt::format("worker {} of {} {} did not reach the barrier within {} s", other,
                              name_of(rank), where_is(rank), header_->policy.timeout_s));
  throw TeamBroken(reason());
}

void Team::give_up(int worker, bool late, bool whole) const {
  Team team = *this;
  if (late) {
    const TeamShape& s = shape();
    const auto count = [&](int w) {
      return (whole ? worker_slot(w).barriers : worker_slot(w).rank_barriers)
          .load(std::memory_order_relaxed);
    };
    const int first = whole ? 0 : worker / s.workers_per_rank * s.workers_per_rank;
    const int end = whole ? s.workers() : first + s.workers_per_rank;
    int blamed = worker / s.workers_per_rank;
    std::string missing;
    for (int w = end - 1; w >= first; --w) {
      if (count(w) >= count(worker)) continue;
      blamed = w / s.workers_per_rank;
      missing = fmt::format("worker {} of {} {}{}{}", w, name_of(blamed), where_is(blamed),
                            missing.empty() ? "" : ", ", missing);
    }
    team.break_up(blamed, fmt::format("{} did not reach the barrier within {} s",
                                      missing.empty() ? "the other workers" : missing,
                                      header_->policy.timeout_s));
  }
  throw TeamBroken(reason());
}

bool Team::break_up(int rank, std::string_view reason, int code, bool tells) noexcept {
  Header& h = *header_;
  Header::Break whole;
  const bool first = h.broken.compare_exchange_strong(whole, {.rank = rank, .code = code});
  if (first) {
    uint32_t open = Header::open;
    if (tells) h.message.compare_exchange_strong(open, Header::promised);
    std::memcpy(h.reason, reason.data(), std::min(reason.size(), kLongestReason));
    h.has_reason.store(true, std::memory_order_release);
  }
  // Later callers do this too: the first one may have been killed before it got here.
  h.barrier.break_up();
  for (int r = 0; r < h.shape.ranks; ++r) rank_slot(r).barrier.break_up();
  for (int w = 0; w < h.shape.workers(); ++w) {
    worker_slot(w).done.break_up();
    worker_slot(w).come.break_up();
  }
  return first;
}

bool Team::broken() const noexcept { return broken_by() != -1; }

std::string Team::reason() const {
  using std::chrono::milliseconds;
  if (!broken()) return {};
  // The first caller of break_up() may still be writing: less than 1 us, unless it was killed.
  for (int i = 0; i < 50; ++i) {
    if (header_->has_reason.load(std::memory_order_acquire)) return header_->reason;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return "a rank ended before it could report its error";
}

int Team::broken_by() const noexcept {
  return header_->broken.load(std::memory_order_acquire).rank;
}
int Team::exit_code() const noexcept {
  return header_->broken.load(std::memory_order_acquire).code;
}

bool Team::claim_message(int rank) noexcept {
  std::atomic<uint32_t>& message = header_->message;
  uint32_t open = Header::open, promised = Header::promised;
  return message.compare_exchange_strong(open, Header::told) ||
         (rank >= 0 && rank == broken_by() &&
          message.compare_exchange_strong(promised, Header::told));
}

double Team::timeout_s() const noexcept { return header_->timeout_s; }
double Team::notice_s() const noexcept { return header_->notice_s; }

void Team::beat(int rank) noexcept {
  std::atomic<uint32_t>& mine = rank_slot(rank).beats;  // no other rank writes it
  const uint32_t next = mine.load(std::memory_order_relaxed) + 1;
  mine.store(next == kEnded ? 1 : next, std::memory_order_relaxed);
}

void Team::end_heartbeat(int rank) noexcept {
  rank_slot(rank).beats.store(kEnded, std::memory_order_relaxed);
}

uint32_t Team::heartbeat(int rank) const noexcept {
  return rank_slot(rank).beats.load(std::memory_order_relaxed);
}

void Team::set_progress(int worker, const Progress& progress) noexcept {
  WorkerSlot& mine = worker_slot(worker);
  mine.epoch.store(progress.epoch, std::memory_order_relaxed);
  mine.step.store(progress.step, std::memory_order_relaxed);
  mine.phase.store(progress.phase, std::memory_order_relaxed);
}

Progress Team::progress(int rank) const noexcept {
  const WorkerSlot& first = worker_slot(rank * header_->shape.workers_per_rank);
  return {.epoch = first.epoch.load(std::memory_order_relaxed),
          .step = first.step.load(std::memory_order_relaxed),
          .phase = first.phase.load(std::memory_order_relaxed)};
}

void Team::set_pid(int rank, int pid) noexcept {
  rank_slot(rank).pid.store(pid, std::memory_order_relaxed);
}

std::string Team::name_of(int rank, std::string_view note) const {
  const int pid = rank_slot(rank).pid.load(std::memory_order_relaxed);
  std::string out = fmt::format("rank {}", header_->first_rank + rank);
  if (pid != 0) out += fmt::format(" (pid {}{}{})", pid, note.empty() ? "" : ", ", note);
  if (header_->host[0] != 0) out += fmt::format(" on {}", header_->host);
  return out;
}

std::string Team::prefix_of(int rank) const {
  if (shape().ranks == 1 && header_->host[0] == 0) return "";
  return fmt::format("rank {}: ", header_->first_rank + rank);
}

std::string Team::host() const { return header_->host; }

std::string Team::where_is(int rank) const { return position_text(progress(rank)); }

std::atomic<int>& Team::stop_word() noexcept { return header_->stop_asked; }

void Team::publish_stop(int worker) noexcept {
  Header& h = *header_;
  const int asked = h.stop_asked.load(std::memory_order_relaxed);
  if (worker != 0 || asked == 0 || h.stop_agreed.load(std::memory_order_relaxed) != 0) return;
  h.stop_barrier.store(worker_slot(0).barriers.load(std::memory_order_relaxed) + 1,
                       std::memory_order_relaxed);
  h.stop_agreed.store(asked, std::memory_order_release);
}

// A worker that has not passed that barrier may or may not see the signal yet; it returns 0 in both
// cases.
int Team::agreed_stop(int worker) const noexcept {
  const int agreed = header_->stop_agreed.load(std::memory_order_acquire);
  if (agreed == 0) return 0;
  const uint64_t been_to = worker_slot(worker).barriers.load(std::memory_order_relaxed);
  return been_to >= header_->stop_barrier.load(std::memory_order_relaxed) ? agreed : 0;
}

void Team::stop_like_other_host(int signal) noexcept {
  int none = 0;
  stop_word().compare_exchange_strong(none, signal);
  publish_stop(0);
}

int Team::agreed_stop() const noexcept {
  return header_->stop_agreed.load(std::memory_order_acquire);
}

void Team::publish_pause(int64_t after) noexcept {
  header_->pause_after.store(after, std::memory_order_release);
}

int64_t Team::agreed_pause() const noexcept {
  return header_->pause_after.load(std::memory_order_acquire);
}

}  // namespace dpt
