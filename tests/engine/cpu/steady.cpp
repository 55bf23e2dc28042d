// What a steady step asks of the system: no memory, and no call into the kernel but for waiting.
// A program of its own, since it has a malloc of its own (glibc's way: every one in the process,
// those of libraries too, comes here).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm/workers.h"
#include "data/folder.h"
#include "train/run_memory.h"
#include "train/run_spec.h"
#include "train/trainer.h"

namespace dpt {
namespace {

std::atomic<const Team*> watched;  // whose steps are looked at; null: nobody's
std::atomic<int> allocations;      // of workers, in steady steps
// Only workers count: other threads may begin to run, and allocate and call as threads do when they
// begin, in any step.
thread_local bool is_worker = false;
std::array<std::atomic<pid_t>, 2> workers;

void become_worker(size_t number) {
  workers[number] = gettid();
  is_worker = true;
}

bool steady() {
  const Team* const team = watched;
  if (!team) return false;
  const Progress now = team->progress(0);
  return now.phase == Phase::training && now.step > 20 && now.step <= 60;
}

void* counted(void* memory) {
  if (is_worker && steady()) ++allocations;
  return memory;
}

}  // namespace
}  // namespace dpt

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) { return dpt::counted(__libc_malloc(n)); }
void* calloc(size_t n, size_t size) { return dpt::counted(__libc_calloc(n, size)); }
void* realloc(void* old, size_t n) { return dpt::counted(__libc_realloc(old, n)); }
void* memalign(size_t align, size_t n) { return dpt::counted(__libc_memalign(align, n)); }
void* aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
int posix_memalign(void** out, size_t align, size_t n) {
  *out = memalign(align, n);
  return *out ? 0 : ENOMEM;
}
}

namespace dpt {
namespace {

// From here on the calls of this thread, and of those it starts, but for waiting wait for an answer
// through the descriptor that is returned; -1: not allowed here.
int report_calls() {
  constexpr auto kNumber = static_cast<uint32_t>(offsetof(seccomp_data, nr));
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 2, 0),
      // Waiting looks at the clock, which is no call but on machines whose clock is a poor one.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

// The numbers of the system calls that workers make in steady steps of body(); none: this machine
// does not let them be seen. body runs in any case.
std::optional<std::vector<int>> calls_of(const std::function<void()>& body) {
  constexpr int kUnknown = -2;
  std::atomic<int> listener = kUnknown;
  std::jthread thread([&] {
    listener = report_calls();
    listener.notify_one();
    body();
  });
  listener.wait(kUnknown);
  if (listener < 0) return std::nullopt;
  std::vector<int> out;
  for (pollfd ready{listener, POLLIN, 0};;) {
    // An end of all that are watched is POLLHUP.
    if (poll(&ready, 1, -1) < 0 || (ready.revents & POLLIN) == 0) break;
    seccomp_notif call{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    const auto caller = static_cast<pid_t>(call.pid);
    if (steady() && std::ranges::any_of(workers, [&](const auto& w) { return w == caller; }))
      out.push_back(call.data.nr);
    seccomp_notif_resp answer{};
    answer.id = call.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  close(listener);
  return out;
}

constexpr const char* kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 650, shape: [1, 6, 6]}}
  transforms: [{random_crop: {padding: 1}}, random_horizontal_flip, to_tensor, random_erasing]
  batch_size: 10
model:
  - flatten
  - residual: {body: [{linear: 50}, layer_norm, gelu, {linear: 36}]}
  - dropout: 0.3
  - linear: 10
loss: {cross_entropy: {weight: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}
optimizer: {adam: 0.01}
schedule: {cosine_annealing: {}, interval: step, warmup: 5}
clip_grad_norm: 1
accumulate: 2
steps: 64
)";

// As run() does it, but with a team that is watched and without files.
void train(const Session& s) {
  const RunMemory memory(s);
  const Team team = memory.team();
  RankState rank(s, memory.buffers(), team, 0, memory.fill());
  Reporter reporter(s, "");
  watched = &team;
  run_workers(team, 0, [&](int worker) {
    become_worker(static_cast<size_t>(worker));
    const Outcome done =
        train_worker(rank, worker, {.reporter = worker == 0 ? &reporter : nullptr});
    if (done.steps != 64) std::abort();
  });
  watched = nullptr;
}

std::unique_ptr<const Session> session(const std::vector<std::string>& how) {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Spec spec = load_spec(folder.file("t.yaml"), how, registries(), files, d, nullptr);
  std::unique_ptr<const Session> out;
  if (d.ok()) out = make_session(std::move(spec), {}, d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  return out;
}

TEST_CASE("what a steady step would allocate and call is seen") {
  const SharedMemory memory = SharedMemory::create_private(Team::bytes({}));
  Team team = Team::create(memory.span(), {}, {});
  team.set_progress(0, {1, 30, Phase::training});
  watched = &team;
  allocations = 0;
  const std::optional<std::vector<int>> calls = calls_of([] {
    become_worker(0);
    allocations = 0;
    void* volatile p = std::malloc(1);
    std::free(p);
    syscall(SYS_getppid);
    watched = nullptr;
  });
  CHECK(allocations >= 1);
  if (calls) CHECK(std::ranges::count(*calls, SYS_getppid) == 1);
}

TEST_CASE("a steady step allocates nothing and calls the kernel only to wait") {
  setenv("TERM", "dumb", 1);  // no progress bar
  for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{
           {"cores=1"},
           {"cores=2"},
           {"parallel=dp", "devices=2", "cores=1"},
           {"parallel=dp", "devices=2", "cores=1", "reproducible={shards: 8}"}}) {
    CAPTURE(how.size());
    CAPTURE(how[0]);
    const std::unique_ptr<const Session> s = session(how);
    allocations = 0;
    const std::optional<std::vector<int>> calls = calls_of([&] { train(*s); });
    CHECK(allocations == 0);
    if (calls)
      CHECK_MESSAGE(calls->empty(), calls->size() << " calls, the first is " << calls->front());
    else
      MESSAGE("skipped: seccomp cannot report system calls here; only allocations are counted");
  }
}

}  // namespace
}  // namespace dpt
