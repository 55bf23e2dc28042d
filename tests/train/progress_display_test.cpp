#include "train/progress_display.h"

#include <cstdlib>
#include <thread>

#include <doctest/doctest.h>
#include <termios.h>

#include "base/stderr.h"
#include "base/terminal.h"
#include "cli/process.h"
#include "engine/clock.h"
#include "train/progress_plan.h"

namespace dpt {
namespace {

constexpr double kPatience = 60;

ProgressState at_step(int64_t step) {
  return {.epoch = 2,
          .of_epoch = step,
          .step = 600 + step,
          .loss = 0.5,
          .lr = 0.001,
          .began_s = now_s()};
}
ProgressState at_batch(int64_t batch) {
  ProgressState out = at_step(600);
  out.evaluating = 1;
  out.batches = batch;
  return out;
}

// Standard output and error go to this descriptor as long as it lives, on a terminal that can erase
// lines.
class Redirect {
 public:
  explicit Redirect(int to) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      std::fflush(nullptr);
      saved_[fd - 1] = ::dup(fd);
      ::dup2(to, fd);
    }
    if (const char* term = std::getenv("TERM")) term_ = term;
    setenv("TERM", "xterm", 1);
  }
  ~Redirect() {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      ::dup2(saved_[fd - 1], fd);
      ::close(saved_[fd - 1]);
    }
    term_.empty() ? unsetenv("TERM") : setenv("TERM", term_.c_str(), 1);
  }
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;

 private:
  int saved_[2];
  std::string term_;
};

bool is_last_frame(const Terminal& terminal, const std::string& part) {
  const std::vector<std::string> frames = status_lines(terminal.text());
  return !frames.empty() && has(frames.back(), part);
}

TEST_CASE("on a terminal the status line follows the run and the terminal's width") {
  const Terminal terminal(80);
  if (!terminal.there()) {
    MESSAGE("skipped: there are no pseudo-terminals here");
    return;
  }
  {
    const Redirect redirect(terminal.descriptor());
    ProgressDisplay display(kPlan, {});
    display.begin(kPlan, at_step(0));
    CHECK(becomes_true(kPatience, [&] { return is_last_frame(terminal, "step 0/600"); }));
    for (const int columns : {80, 40, 200}) {
      CAPTURE(columns);
      terminal.resize(columns);
      const std::string step = fmt::format("step {}/600", columns);
      display.publish(at_step(columns));
      CHECK(becomes_true(kPatience, [&] { return is_last_frame(terminal, step); }));
      CHECK(becomes_true(kPatience, [&] {
        return has(status_lines(terminal.text()).back(), "lr 0.001") == (columns == 200);
      }));
      CHECK(status_lines(terminal.text()).back().size() < static_cast<size_t>(columns));
    }
    display.publish(at_batch(25));
    CHECK(becomes_true(kPatience, [&] { return is_last_frame(terminal, "evaluating 25/100"); }));
    display.print("Epoch [2/10], Loss: 0.5000\n", "epoch 2/10: 1.00 s\n");
    display.settle();
    print_stderr("behind it\n");
  }
  CHECK(becomes_true(kPatience, [&] { return has(terminal.text(), "behind it"); }));
  CHECK(lasting_text(terminal.text()) ==
        "Epoch [2/10], Loss: 0.5000\nepoch 2/10: 1.00 s\nbehind it\n");
}

TEST_CASE("messages of others remove the status line first") {
  const Terminal terminal(80);
  if (!terminal.there()) return;
  {
    const Redirect redirect(terminal.descriptor());
    ProgressDisplay display(kPlan, {});
    display.begin(kPlan, at_step(0));
    CHECK(becomes_true(kPatience, [&] { return is_last_frame(terminal, "step 0/600"); }));
    print_stderr("a warning\n");
    display.publish(at_step(7));
    CHECK(becomes_true(kPatience, [&] { return is_last_frame(terminal, "step 7/600"); }));
  }
  CHECK(becomes_true(kPatience, [&] { return lasting_text(terminal.text()) == "a warning\n"; }));
}

TEST_CASE("a terminal that is stopped does not delay training, and gets all lines later") {
  const Terminal terminal(80);
  if (!terminal.there()) return;
  std::string all;
  {
    const Redirect redirect(terminal.descriptor());
    ProgressDisplay display(kPlan, {.step_lines = true});
    REQUIRE(tcflow(terminal.descriptor(), TCOOFF) == 0);
    display.begin(kPlan, at_step(0));
    for (int i = 0; i < 1000; ++i) {  // would never end if one of them waited
      display.publish(at_step(i));
      display.step_line({.epoch = 1, .of_epoch = i});
      display.print(fmt::format("out {}\n", i), fmt::format("err {}\n", i));
      all += fmt::format("epoch 1/10, step {0}/600: loss 0.0000, lr 0\nout {0}\nerr {0}\n", i);
    }
    CHECK_FALSE(has(terminal.text(), "out"));
    REQUIRE(tcflow(terminal.descriptor(), TCOON) == 0);
  }
  becomes_true(kPatience, [&] { return lasting_text(terminal.text()) == all; });
  CHECK(lasting_text(terminal.text()) == all);
}

TEST_CASE("a stopped terminal gets only some step lines") {
  const Terminal terminal(80);
  if (!terminal.there()) return;
  constexpr int kLines = 5000;
  {
    const Redirect redirect(terminal.descriptor());
    ProgressDisplay display(kPlan, {.step_lines = true});
    REQUIRE(tcflow(terminal.descriptor(), TCOOFF) == 0);
    display.begin(kPlan, at_step(0));
    for (int i = 0; i < kLines; ++i) display.step_line({.epoch = 1, .of_epoch = i});
    REQUIRE(tcflow(terminal.descriptor(), TCOON) == 0);
  }
  CHECK(becomes_true(kPatience,
                     [&] { return has(terminal.text(), "not shown: the terminal is too slow"); }));
}

TEST_CASE("in a log there is a line at each interval, within steps and evaluations too") {
  const Folder folder;
  const std::string log = folder.write("log", "");
  const int file = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(file >= 0);
  {
    const Redirect redirect(file);
    ProgressDisplay display(kPlan, {.log_interval_s = 0.02});
    ProgressState state = at_step(0);
    state.epoch = 1;
    state.step = 0;
    display.begin(kPlan, state);
    const auto appears = [&](const std::string& text) {
      return becomes_true(kPatience, [&] { return has(read_file(log), text); });
    };
    CHECK(appears("epoch 1/10, step 0/600: elapsed 0:00\n"));  // the first step takes that long
    display.publish(at_step(300));
    CHECK(appears("epoch 2/10, step 300/600: loss 0.5000, lr 0.001, "));
    display.publish(at_batch(25));
    CHECK(appears("epoch 2/10, step 600/600: evaluated 25 of 100 batches, elapsed 0:0"));
    display.settle();
    CHECK_FALSE(has(read_file(log), "\x1b"));
  }
  ::close(file);
}

TEST_CASE("a file holds the line of the last step while the run trains") {
  const Folder folder;
  const std::string log = folder.write("log", ""), path = folder.file("progress.txt");
  const int file = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(file >= 0);
  {
    const Redirect redirect(file);
    ProgressDisplay display(kPlan, {.file = path});
    display.begin(kPlan, at_step(1));
    display.publish(at_step(300));
    CHECK(becomes_true(kPatience, [&] {
      return read_file(path).starts_with("epoch 2/10, step 300/600: loss 0.5000, lr 0.001, ");
    }));
    display.settle();
  }
  ::close(file);
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(read_file(log).empty());
}

TEST_CASE("in a log all step lines are there, before the epoch's") {
  const Folder folder;
  const std::string log = folder.write("log", "");
  const int file = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(file >= 0);
  constexpr int64_t kEpochs = 3, kSteps = 20000;  // more than are kept
  std::string all;
  const ProgressPlan plan{.epochs = kEpochs, .steps_of_epoch = kSteps, .steps = kEpochs * kSteps};
  for (const bool begun : {true, false}) {  // false: as if the thread could not be started
    REQUIRE(::ftruncate(file, 0) == 0);
    all.clear();
    {
      const Redirect redirect(file);
      ProgressDisplay display(plan, {.step_lines = true});
      if (begun) display.begin(plan, {});
      for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
        for (int64_t i = 1; i <= kSteps; ++i) {
          const StepLine line{.epoch = epoch, .of_epoch = i, .loss = 0.5, .lr = 0.25};
          display.step_line(line);
          all += step_line(plan, line);
        }
        display.print("Epoch\n", "epoch\n");
        all += "Epoch\nepoch\n";
      }
    }
    CHECK(read_file(log) == all);
  }
  ::close(file);
}

TEST_CASE("what is read from a board is what was written at one time") {
  SequenceLock<ProgressState> board;
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int64_t i = 1; !stop; ++i)
      board.write({.epoch = i, .step = i, .loss = static_cast<double>(i), .evaluated_s = 0});
  });
  bool same = true;
  for (int i = 0; i < 20000; ++i) {
    const ProgressState s = board.read();
    same = same && s.epoch == s.step && static_cast<double>(s.epoch) == s.loss;
  }
  stop = true;
  writer.join();
  CHECK(same);
}

}  // namespace
}  // namespace dpt
