// dptrain watch RUN: shows a run while it trains.
#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/folder_lock.h"
#include "base/signals.h"
#include "base/status_line.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/run_argument.h"
#include "cli/terminal_text.h"
#include "report/metrics_follower.h"
#include "report/watch_view.h"
#include "train/reporter.h"
#include "train/run_summary.h"

namespace dpt::commands {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(100);
constexpr size_t kMostRecent = 10;  // records that a log begins with
constexpr int kPollsOfState = 5;    // between two looks at the run's lock

double utc_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TextChartSize terminal_size() {
  winsize size{};
  constexpr int kColumns = 80, kRows = 24;
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return {.columns = known && size.ws_col > 0 ? size.ws_col : kColumns,
          .rows = known && size.ws_row > 0 ? size.ws_row : kRows,
          .ascii = !shows_utf8()};
}

// The terminal's other screen, which is left as it was when this object is gone.
class Screen {
 public:
  Screen() { write_stdout("\x1b[?1049h\x1b[?25l"); }
  ~Screen() { write_stdout("\x1b[?25h\x1b[?1049l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static void show(const std::vector<std::string>& lines) {
    write_stdout(fmt::format("\x1b[H{}\x1b[K\x1b[J", fmt::join(lines, "\x1b[K\r\n")));
  }
};

class Watch {
 public:
  explicit Watch(const std::string& run) : follower_(run) {
    shown_.path = run;
    shown_.curves = &curves_;
    look_at_state();
    read({});
  }

  bool running() const { return shown_.state == name_of(RunState::running); }

  // A process holds the lock a moment longer than it trains.
  void look_at_state() {
    const bool locked = is_locked(shown_.path);
    if (locked && running()) return;
    const RunSummary summary = summarize_run(shown_.path);
    const auto spec = summary.spec.find("name");
    shown_.spec = spec == summary.spec.end() ? "" : spec->second;
    shown_.state = name_of(locked ? RunState::running : summary.state);
    shown_.note = locked ? "" : summary.note;
    const auto number = [&](std::string_view key) {
      return summary.environment ? summary.environment->number(key).value_or(0) : 0;
    };
    shown_.epochs = static_cast<int64_t>(number("epochs"));
    shown_.steps = static_cast<int64_t>(number("steps"));
    shown_.began = number("started");
  }

  // Returns whether there was something new. line: called for each new record.
  bool read(const std::function<void(std::string_view)>& line) {
    bool any = false;
    follower_.read(
        [&](std::string_view text) {
          curves_.add(text);
          any = true;
          if (line) return line(text);
          recent_.emplace_back(text);
          if (recent_.size() > kMostRecent) recent_.pop_front();
        },
        [&] {
          curves_ = {};
          shown_.state.clear();  // another run, or one that continues: read what it says of itself
        });
    if (shown_.state.empty()) look_at_state();
    std::ifstream progress(progress_file(shown_.path));
    std::getline(progress, shown_.progress);
    return any;
  }

  std::vector<std::string> lines(const TextChartSize& size) const {
    return watch_lines(shown_, size, utc_s());
  }
  const WatchedRun& shown() const { return shown_; }
  const std::deque<std::string>& recent() const { return recent_; }  // the last records

 private:
  MetricsFollower follower_;
  RunCurves curves_;
  WatchedRun shown_;
  std::deque<std::string> recent_;
};

// Calls `frame` until the run ends or a signal arrives; returns the signal.
template <class F>
int follow(Watch& watch, F&& frame) {
  std::atomic<int> stopped = 0;
  const StopSignals signals(stopped);
  for (int poll = 0; stopped == 0; ++poll) {
    if (poll % kPollsOfState == 0) watch.look_at_state();
    const bool running = watch.running();
    frame();  // after the look: what the run wrote last is shown
    if (!running) break;
    std::this_thread::sleep_for(kPoll);
  }
  return stopped;
}

int watch_on_terminal(Watch& watch) {
  int stopped = 0;
  {
    const Screen screen;
    TextChartSize size{.columns = 0, .rows = 0};
    double drawn_s = 0;
    stopped = follow(watch, [&] {
      const TextChartSize now = terminal_size();
      const bool changed = now.columns != size.columns || now.rows != size.rows;
      size = now;
      // Each second for the times, which run on without records.
      if (!watch.read({}) && !changed && utc_s() - drawn_s < 1) return;
      drawn_s = utc_s();
      Screen::show(watch.lines(size));
    });
  }
  for (const std::string& line : watch.lines(terminal_size())) write_stdout(line + "\n");
  return stopped;
}

int watch_in_log(Watch& watch) {
  print_stdout("{}: {}{}{}\n", watch.shown().path, watch.shown().spec,
               watch.shown().spec.empty() ? "" : ", ", watch.shown().state);
  const auto print = [&](std::string_view line) {
    print_stdout("{}", record_line(watch.shown(), line));
  };
  for (const std::string& line : watch.recent()) print(line);
  LogPosition position;
  return follow(watch, [&] {
    const bool recorded = watch.read(print);
    print_stdout("{}", position.line(watch.shown(), recorded, utc_s()));
  });
}

struct WatchArguments {
  std::string run;
  bool once = false;
};

void declare_watch(Arguments& arguments, WatchArguments& given) {
  arguments.about(
      "Shows a run while it trains: state, position, time left, losses and metrics, and a chart of "
      "the\nloss. It only reads the run directory, so it may run in any shell that sees it. It "
      "ends "
      "with the run,\nor by Ctrl-C, which does not touch the run. If standard output is not a "
      "terminal, it prints a line\nfor each new record, and one with the position when it begins "
      "and after a minute without a line.");
  arguments.text("RUN", given.run, {takes::run},
                 "a run directory, or runs/NAME for its newest run; default: the newest run below "
                 "runs");
  arguments.flag("--once", given.once, "print the current state and exit");
}

int run_watch(WatchArguments& given) {
  Watch watch(find_run(given.run));
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  if (given.once) {
    for (const std::string& line : watch.lines(terminal_size())) write_stdout(line + "\n");
    return 0;
  }
  const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
  const bool draws = terminal && term && std::string_view(term) != "dumb";
  const int stopped = draws ? watch_on_terminal(watch) : watch_in_log(watch);
  const auto width = terminal ? static_cast<size_t>(terminal_size().columns - 1) : 0;
  if (stopped == 0) print_stdout("{}", final_text(watch.shown(), width));
  return stopped == 0 ? 0 : exit_code_of(stopped);
}

}  // namespace

Command watch() {
  return make_command("watch", "show a run while it trains", declare_watch, run_watch);
}

}  // namespace dpt::commands
