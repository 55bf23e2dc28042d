// dptrain watch and dptrain report, as a user runs them.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include "base/folder_lock.h"
#include "base/terminal.h"
#include "cli/process.h"
#include "report/text_chart.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

const std::string kQuick = R"(
name: quick
data: {dataset: {random: {samples: 40, in_features: 3, out_features: 2}}, batch_size: 10}
model: [{linear: 2}]
loss: mse_loss
optimizer: {sgd: 0.01}
epochs: 3
cores: 1
log: {every: 2}
)";

std::string epoch_line(int epoch) {
  return fmt::format(
      "{{\"epoch\": {0}, \"loss\": {1}, \"seconds\": 1, \"steps\": 4, \"lr\": 0.01, "
      "\"samples_per_second\": 40.0, \"test_loss\": {1}, \"time\": {2}, \"run\": \"a\"}}\n",
      epoch, 1.0 / epoch, 1000 + epoch);
}

// A run that seems to be running, as long as this object is there.
struct Running {
  Running() {
    folder.write("runs/net/1/spec.resolved.yaml", "name: net\nepochs: 5\n");
    folder.write("runs/net/1/env.json", R"({"epochs": 5, "steps": 20, "started": 1000})");
    add(1);
    lock.emplace(folder.file("runs/net/1"));
  }
  void add(int epoch) {
    text += epoch_line(epoch);
    folder.write("runs/net/1/metrics.jsonl", text);
  }
  Folder folder;
  std::string text;
  std::optional<FolderLock> lock;
};

TEST_CASE("watch prints a line per record into a log, and ends with the run") {
  Running run;
  const Process watch({"watch", "net"}, {}, run.folder.path());
  CHECK(becomes_true(60, [&] { return has(watch.out(), "epoch 1/5: "); }));
  CHECK(watch.out() ==
        "runs/net/1: net, running\n"
        "epoch 1/5: loss 1.0000, 1.00 s, lr 0.01, 40 samples/s, test.loss 1.0000\n");
  run.add(2);
  CHECK(becomes_true(60, [&] { return has(watch.out(), "epoch 2/5: loss 0.5000"); }));
  run.folder.write("runs/net/1/error.txt", "exit code 1\nthe disk is full\n");
  run.lock.reset();
  CHECK(const_cast<Process&>(watch).wait(60) == 0);
  CHECK(
      has(watch.out(),
          "runs/net/1: failed, epoch 2/5, step 8/20, loss 0.5000 (best), test.loss 0.5000 (best), "
          "the disk is full\n"));
  CHECK(watch.out().find('\r') == std::string::npos);
  CHECK(watch.out().find('\x1b') == std::string::npos);
}

TEST_CASE("watch in a log shows the position before the first record") {
  Folder folder;
  folder.write("runs/net/1/spec.resolved.yaml", "name: net\nepochs: 5\n");
  folder.write("runs/net/1/env.json", R"({"epochs": 5, "steps": 20, "started": 1000})");
  folder.write("runs/net/1/progress.txt", "epoch 1/5, step 2/4: loss 0.4000, lr 0.01\n");
  std::optional<FolderLock> lock(folder.file("runs/net/1"));
  Process watch({"watch", "net"}, {}, folder.path());
  CHECK(becomes_true(60, [&] { return has(watch.out(), "step 2/4"); }));
  CHECK(watch.out() == "runs/net/1: net, running\nepoch 1/5, step 2/4: loss 0.4000, lr 0.01\n");
  lock.reset();
  CHECK(watch.wait(60) == 0);
}

TEST_CASE("watch ends by Ctrl-C, and --once prints what there is") {
  Running run;
  Process watch({"watch", "runs/net/1"}, {}, run.folder.path());
  CHECK(becomes_true(60, [&] { return has(watch.out(), "epoch 1/5: "); }));
  watch.send(SIGINT);
  CHECK(watch.wait(60) == 130);
  run.add(2);
  const Finished once = dptrain({"watch", "--once"}, {{"LC_ALL", "C.UTF-8"}}, run.folder.path());
  CHECK(once.code == 0);
  CHECK(has(once.err, "the newest run is runs/net/1\n"));
  CHECK(has(once.out, "runs/net/1  net  running\nepoch 2/5  step 8/20  ["));
  CHECK(has(once.out, "\u2502"));
  CHECK(once.out.find('\r') == std::string::npos);
  const Finished ascii = dptrain({"watch", "--once"}, {{"LC_ALL", "C"}}, run.folder.path());
  CHECK(std::ranges::all_of(ascii.out, [](char c) { return static_cast<signed char>(c) > 0; }));
}

TEST_CASE("watch and report say what is missing") {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& message) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK(f.code == 4);
    CHECK_MESSAGE(has(f.err, message), f.err);
  };
  for (const char* command : {"watch", "report"}) {
    refused({command}, "found no run in runs/");
    refused({command, "none"}, "none is not a directory");
    refused({command, "."}, ". holds no run: ");
  }
}

// The program on a terminal; its process.
pid_t watch_on(const Terminal& terminal, const std::string& run) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setsid();
  ::ioctl(terminal.descriptor(), TIOCSCTTY, 0);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::dup2(terminal.descriptor(), fd);
  ::setenv("TERM", "xterm", 1);
  ::setenv("LC_ALL", "C.UTF-8", 1);
  const std::string path = program();
  ::execl(path.c_str(), path.c_str(), "watch", run.c_str(), nullptr);
  ::_exit(127);
}

TEST_CASE("on terminals of 40, 80 and 200 columns watch redraws, and leaves the last view") {
  for (const int columns : {40, 80, 200}) {
    CAPTURE(columns);
    Running run;
    const Terminal terminal(columns);
    if (!terminal.there()) {
      MESSAGE("skipped: there are no pseudo-terminals here");
      return;
    }
    const pid_t watch = watch_on(terminal, run.folder.file("runs/net/1"));
    CHECK(becomes_true(60, [&] { return has(terminal.text(), "epoch 1/5"); }));
    run.add(2);
    CHECK(becomes_true(60, [&] { return has(terminal.text(), "epoch 2/5"); }));
    run.add(3);
    run.lock.reset();
    int status = 0;
    CHECK(::waitpid(watch, &status, 0) == watch);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(becomes_true(10, [&] { return has(terminal.text(), "killed, epoch 3/5"); }));
    const std::string text = terminal.text();
    const size_t left = text.rfind("\x1b[?1049l");
    CHECK(text.find("\x1b[?1049h") < left);
    const std::string last = text.substr(left);
    CHECK(has(last, "test.loss"));
    std::istringstream lines(last.substr(last.find("killed, epoch")));
    for (std::string line; std::getline(lines, line);)
      CHECK_MESSAGE(line.size() <= static_cast<size_t>(columns), line);
    // Each line of a frame is shorter than the terminal.
    std::string shown = text.substr(0, left);
    for (size_t at = shown.find("\x1b[H"); at != shown.npos; at = shown.find("\x1b[H"))
      shown.replace(at, 3, "\n");
    std::istringstream frames(shown);
    for (std::string line; std::getline(frames, line);) {
      for (size_t at = line.find('\x1b'); at != line.npos; at = line.find('\x1b'))
        line.erase(at, line.find_first_of("hlKHJ", at) - at + 1);
      std::erase(line, '\r');
      CHECK_MESSAGE(characters_of(line) < static_cast<size_t>(columns), line);
    }
  }
}

TEST_CASE("a run leaves a page, and report makes one of others and of several") {
  const Folder folder;
  folder.write("t.yaml", kQuick);
  const Finished first = dptrain({"t.yaml"}, {}, folder.path());
  CHECK_MESSAGE(has(first.err, "report: runs/quick/1/report.html\n"), first.err);
  const std::string page = read_file(folder.file("runs/quick/1/report.html"));
  CHECK(has(page, ">finished</span>"));
  CHECK(has(page, "<figcaption>loss</figcaption>"));
  CHECK(has(page, "parameters: 8"));  // of plan.txt
  CHECK(has(read_file(folder.file("runs/quick/1/results.csv")), "\n3,"));

  CHECK(dptrain({"t.yaml", "parallel=ddp", "devices=2"}, {}, folder.path()).code == 0);
  CHECK(has(read_file(folder.file("runs/quick/2/report.html")), "<td>ranks</td><td>2</td>"));
  CHECK(dptrain({"t.yaml", "optimizer.lr=1e30", "epochs=50"}, {}, folder.path()).code == 7);
  CHECK(has(read_file(folder.file("runs/quick/3/report.html")), ">diverged</span>"));

  fs::remove(folder.file("runs/quick/1/report.html"));
  const Finished one = dptrain({"report", "runs/quick/1"}, {}, folder.path());
  CHECK(one.out == "report: runs/quick/1/report.html\n");
  CHECK(fs::exists(folder.file("runs/quick/1/report.html")));
  CHECK(dptrain({"t.yaml", "name=again"}, {}, folder.path()).code == 0);
  const Finished both =
      dptrain({"report", "runs/quick/1", "again", "--out=both.html"}, {}, folder.path());
  CHECK_MESSAGE(has(both.out, "  runs/quick/1, runs/again/1 (the same bits)\n"), both.out);
  CHECK(has(both.out, "report: both.html\n"));
  CHECK(has(read_file(folder.file("both.html")), "All runs ended in the same bits."));
  const Finished picture =
      dptrain({"report", "runs/quick/1", "--out=one.html", "--svg=one.svg"}, {}, folder.path());
  CHECK(picture.out == "report: one.html\npicture: one.svg\n");
  CHECK(read_file(folder.file("one.svg")).starts_with("<svg "));
}

}  // namespace
}  // namespace dpt
