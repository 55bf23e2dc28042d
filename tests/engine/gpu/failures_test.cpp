// What ranks tell each other, and how they end, where one of their GPUs fails, hangs or is late.
#include <cstdio>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/folder.h"
#include "engine/gpu/fake_fleet.h"
#include "engine/gpu/gpu_specs.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using cuda::FakeApi;
using Words = std::vector<std::string>;

// Of few steps, with `timeout: 1`.
const Words kSmall = {"parallel={ddp: {bucket_cap_mb: 0.001, timeout: 1}}", "devices=2",
                      "device=cuda", "epochs=1", "evaluate=false"};

TEST_CASE("a rank that fails tells the others before it waits for their communicators" *
          doctest::skip(!kCanFork)) {
  for (const int64_t n : {150, 170}) {
    CAPTURE(n);
    Fleet gpus;
    const Ran failed = run_spec(kMlp, kSmall, gpus.opener([n](FakeApi::Settings& s) {
      s.fail_call = s.index == 1 ? n : -1;
      s.mutual_aborts = true;
      s.patience_s = 3;
    }));
    CHECK(failed.err.find(fmt::format("call {} of the fake GPU", n)) != std::string::npos);
    CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
  }
}

TEST_CASE("ranks have some seconds to give their communicators up" * doctest::skip(!kCanFork)) {
  Fleet gpus;
  const Ran failed = run_spec(kMlp, kSmall, gpus.opener([](FakeApi::Settings& s) {
    s.fail_call = s.index == 1 ? 150 : -1;
    s.abort_s = s.index == 0 ? 1.5 : 0;
  }));
  CHECK(failed.code == static_cast<int>(Fault::device));
  CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());  // also: both were closed, none was killed
}

TEST_CASE("GPUs that take longer to start than `timeout` are waited for" *
          doctest::skip(!kCanFork)) {
  for (const int64_t call : {5, 100}) {  // before it joins, and in a step
    Fleet gpus;
    const Ran ran = run_spec(kMlp, kSmall, gpus.opener([call](FakeApi::Settings& s) {
      s.stall_call = s.index == 1 ? call : -1;
    }));
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
}

// The exit code of a process that trains on two GPUs, of which one does not return from a call
// while the other one fails.
int code_of_hanging_worker() {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(30);
    Fleet gpus;
    const Folder folder;
    const Ran ran = run_spec_in(
        {.folder = folder.path(), .watchdog_s = 0.2}, kMlp,
        {"parallel={dp: {loss: distributed}}", "devices=2", "device=cuda", "evaluate=false"},
        gpus.opener([](FakeApi::Settings& s) {
          s.fail_call = s.index == 0 ? 155 : -1;
          s.hang_call = s.index == 1 ? 150 : -1;
        }));
    _exit(90 + ran.code);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_CASE("a process whose GPU hangs after another one has failed is ended" *
          doctest::skip(!kCanFork)) {
  CHECK(code_of_hanging_worker() == static_cast<int>(Fault::device));
}

}  // namespace
}  // namespace dpt
