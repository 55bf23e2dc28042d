#include "report/sweep_display.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/count.h"
#include "base/status_line.h"
#include "base/stderr.h"
#include "engine/clock.h"
#include "report/metric_text.h"
#include "report/sweep_table.h"

namespace dpt {
namespace {

constexpr double kRedraw = 0.1, kLogInterval = 60;  // seconds

size_t terminal_rows() {
  winsize size{};
  constexpr size_t kUsual = 24;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : kUsual;
}

std::string number_text(const SweepRun& run, const std::string& name) {
  const auto value = run.numbers.records().empty() ? std::nullopt : run.numbers.find(name);
  return value ? value_text(name, *value) : "-";
}

}  // namespace

double share_done(const Sweep& sweep) {
  double done = 0, all = 0;
  for (const SweepRun& r : sweep.runs) {
    const auto epochs = static_cast<double>(std::max<int64_t>(1, r.facts.epochs));
    all += epochs;
    done += r.has_ended() ? epochs : std::min(epochs, static_cast<double>(r.numbers.epochs()));
  }
  return all > 0 ? done / all : 1;
}

SweepDisplay::SweepDisplay(const Sweep& sweep)
    : sweep_(sweep),
      terminal_(has_status_line()),
      began_s_(now_s()),
      drawn_s_(now_s()),
      done_before_(share_done(sweep)) {}

SweepDisplay::~SweepDisplay() { erase(); }

void SweepDisplay::erase() {
  if (lines_ > 0) write_stderr(fmt::format("\r\x1b[{}A\x1b[J", lines_));
  lines_ = 0;
}

void SweepDisplay::began(const SweepRun& run) {
  begins_[&run] = {.at_s = now_s(), .epochs = run.numbers.epochs()};
  if (!terminal_) print_stderr("{}: begins\n", run.point.name);
}

void SweepDisplay::ended(const SweepRun& run) {
  erase();
  std::string line = fmt::format("{}: {}", run.point.name, name_of(run.state));
  if (run.numbers.epochs() > 0) {
    line += fmt::format(" after {}, loss {}", counted(run.numbers.epochs(), "epoch"),
                        number_text(run, "loss"));
    if (sweep_.metric != "loss")
      line += fmt::format(", {} {}", sweep_.metric, number_text(run, sweep_.metric));
  }
  if (!run.note.empty()) line += ": " + run.note;
  print_stderr("{}\n", line);
}

double SweepDisplay::seconds_left(const SweepRun& run, double now) const {
  const auto found = begins_.find(&run);
  if (found == begins_.end() || run.facts.epochs == 0) return -1;
  const auto done = static_cast<double>(run.numbers.epochs() - found->second.epochs);
  const auto left = static_cast<double>(run.facts.epochs - run.numbers.epochs());
  return done > 0 && left >= 0 ? (now - found->second.at_s) / done * left : -1;
}

std::string SweepDisplay::summary() const {
  std::map<SweepState, int> counts;
  for (const SweepRun& r : sweep_.runs) ++counts[r.state];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts)
    parts.push_back(fmt::format("{} {}", count, name_of(state)));
  const double elapsed = now_s() - began_s_, done = share_done(sweep_);
  std::string out = fmt::format("{}: {}; {}", counted(sweep_.runs.size(), "run"),
                                fmt::join(parts, ", "), clock_duration(elapsed));
  if (done > done_before_ && done < 1)
    out += fmt::format(", about {} left",
                       clock_duration(elapsed / (done - done_before_) * (1 - done)));
  return out;
}

void SweepDisplay::tick() {
  const double now = now_s();
  if (now - drawn_s_ < (terminal_ ? kRedraw : kLogInterval)) return;
  drawn_s_ = now;
  if (!terminal_) return print_stderr("{}\n", summary());
  if (tcgetpgrp(STDERR_FILENO) != getpgrp()) return;  // in the background
  std::vector<const SweepRun*> shown;
  for (const SweepRun& r : sweep_.runs) shown.push_back(&r);
  const auto order = [](const SweepRun* r) {
    return r->state == SweepState::running ? 0 : r->has_ended() ? 2 : 1;
  };
  const size_t room = std::max<size_t>(terminal_rows(), 6) - 4;
  if (shown.size() > room) {  // otherwise in the order of the sweep
    std::ranges::stable_sort(shown, {}, order);
    shown.resize(room);
  }
  std::vector<TextColumn> columns = {{.cells = {"run"}, .cut = TextColumn::Cut::front},
                                     {.cells = {"state"}, .rank = 1},
                                     {.cells = {"epoch"}, .right = true},
                                     {.cells = {"loss"}, .right = true},
                                     {.cells = {sweep_.metric}, .right = true},
                                     {.cells = {"left"}, .right = true, .rank = 2}};
  for (const SweepRun* r : shown) {
    const double left = r->state == SweepState::running ? seconds_left(*r, now) : -1;
    const std::string of = r->facts.epochs > 0
                               ? fmt::format("{}/{}", r->numbers.epochs(), r->facts.epochs)
                               : fmt::format("{}", r->numbers.epochs());
    const std::string cells[] = {r->point.name,
                                 std::string(name_of(r->state)),
                                 of,
                                 number_text(*r, "loss"),
                                 number_text(*r, sweep_.metric),
                                 left < 0 ? "-" : clock_duration(left)};
    for (size_t c = 0; c < columns.size(); ++c) columns[c].cells.push_back(cells[c]);
  }
  if (sweep_.metric == "loss") columns.erase(columns.begin() + 4);
  const auto width = static_cast<size_t>(terminal_columns(STDERR_FILENO));
  fit_columns(columns, width - 1);
  const std::string text = table_text(columns) + summary() + "\n";
  std::string block = lines_ > 0 ? fmt::format("\r\x1b[{}A\x1b[J", lines_) : "";
  lines_ = 0;
  for (size_t at = 0; at < text.size(); ++lines_) {
    const size_t end = text.find('\n', at);
    block += escape_controls(text.substr(at, std::min(end - at, width - 1))) + "\n";
    at = end + 1;
  }
  write_stderr(block);  // a single write, so that it does not flicker
}

}  // namespace dpt
