#include "train/progress_display.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/files.h"
#include "base/status_line.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/units.h"
#include "comm/heartbeat.h"
#include "engine/clock.h"

namespace dpt {
namespace {

constexpr double kFrame = 0.1;       // s
constexpr double kStepLines = 0.25;  // s: so late may a step's line be in a log
constexpr double kFile = 1;          // s
constexpr size_t kMostBytes = kMiB;
// Step lines between two looks of the thread; more are not shown on a terminal, and waited for
// elsewhere.
constexpr size_t kMostOnTerminal = 256, kMostInLog = 16384;

bool in_background() {
  const pid_t group = ::tcgetpgrp(STDERR_FILENO);
  return group > 0 && group != ::getpgrp();
}

}  // namespace

ProgressDisplay::ProgressDisplay(const ProgressPlan& plan, const Settings& settings)
    : plan_(plan),
      settings_(settings),
      terminal_(has_status_line()),
      same_terminal_(terminal_ && ::isatty(STDOUT_FILENO) != 0),
      joined_(results_join_messages()),
      most_lines_(terminal_ ? kMostOnTerminal : kMostInLog),
      speed_(plan, now_s()) {
  if (!settings_.step_lines) return;
  lines_.reserve(most_lines_);
  taken_lines_.reserve(most_lines_);
}

ProgressDisplay::~ProgressDisplay() { settle(); }

void ProgressDisplay::begin(const ProgressPlan& plan, const ProgressState& state) {
  plan_ = plan;
  publish(state);
  const double now = now_s();
  speed_ = SpeedEstimate(plan_, now);
  written_s_ = now;
  try {
    thread_ = start_without_signals([this] { run(); });
  } catch (const std::exception&) {
  }
}

// Called with io_ held.
double ProgressDisplay::rest_s(double now) const {
  if (terminal_) return kFrame;
  const double line = std::max(0.01, written_s_ + settings_.log_interval_s - now);
  const double rest = settings_.file.empty() ? line : std::min(kFile, line);
  return settings_.step_lines ? std::min(kStepLines, rest) : rest;
}

void ProgressDisplay::run() noexcept {
  while (true) {
    double rest = 0;
    try {
      const std::lock_guard io(io_);
      write_all(true);
      rest = rest_s(now_s());
    } catch (const std::exception&) {  // out of memory for a line
      rest = kFrame;
    }
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::duration<double>(rest), [&] { return wanted_ || stopping_; });
    wanted_ = false;
    if (stopping_) return;
  }
}

void ProgressDisplay::take() {
  const std::lock_guard lock(mutex_);
  taken_lines_.clear();
  taken_items_.clear();
  std::swap(lines_, taken_lines_);
  std::swap(items_, taken_items_);
  taken_skipped_ = std::exchange(skipped_, 0);
  item_bytes_ = 0;
  took_.notify_all();
}

// Called with io_ held.
void ProgressDisplay::write_all(bool draw_too) {
  take();
  std::string text;
  for (const Item& item : taken_items_)
    item.out ? write_stdout(item.text) : write_stderr(item.text);
  for (const StepLine& line : taken_lines_) text += dpt::step_line(plan_, line);
  if (taken_skipped_ > 0)
    text += fmt::format("({} not shown: the terminal is too slow)\n",
                        counted(taken_skipped_, "more step"));
  if (!text.empty()) write_stderr(text);
  const double now = now_s();
  if (!text.empty()) written_s_ = now;
  if (draw_too) {
    write_progress_file(now);
    draw(now);
  }
}

// Called with io_ held. Without the file, as on a full disk, only `dptrain watch` shows less.
void ProgressDisplay::write_progress_file(double now) {
  const ProgressState state = state_.read();
  if (settings_.file.empty() || state.step == 0 || now - filed_s_ < kFile) return;
  filed_s_ = now;
  const std::string next = settings_.file + ".next";
  try {
    write_text(next, progress_line(plan_, state, speed_.figures(state, now)));
    std::rename(next.c_str(), settings_.file.c_str());
  } catch (const Error&) {
    std::remove(next.c_str());
  }
}

// Called with io_ held.
void ProgressDisplay::draw(double now) {
  const ProgressState state = state_.read();
  if (terminal_) {
    if (now - drawn_s_ < kFrame || in_background()) return;
    drawn_s_ = now;
    write_status(
        status_line(plan_, state, speed_.figures(state, now), terminal_columns(STDERR_FILENO)));
    return;
  }
  if (now - written_s_ < settings_.log_interval_s || notes_are_silent()) return;
  written_s_ = now;
  write_stderr(progress_line(plan_, state, speed_.figures(state, now)));
}

void ProgressDisplay::step_line(const StepLine& line) {
  if (notes_are_silent()) return;
  std::unique_lock lock(mutex_);
  if (lines_.size() >= most_lines_ && !(terminal_ && thread_.joinable())) {
    if (thread_.joinable()) {
      wanted_ = true;
      wake_.notify_all();
      took_.wait(lock, [&] { return lines_.size() < most_lines_; });
    } else {
      lock.unlock();
      print("", "");
      lock.lock();
    }
  }
  if (lines_.size() < most_lines_)
    lines_.push_back(line);
  else
    ++skipped_;
}

void ProgressDisplay::print(std::string out, std::string err) {
  if (!terminal_ || !thread_.joinable()) {
    const std::lock_guard io(io_);
    write_all(false);
    if (!out.empty()) write_stdout(out);
    if (!err.empty()) write_stderr(err);
    written_s_ = now_s();
    return;
  }
  if (!same_terminal_ && !out.empty()) write_stdout(std::exchange(out, ""));
  std::unique_lock lock(mutex_);
  // Step lines recorded earlier must be printed before this text.
  std::string lines;
  for (const StepLine& line : lines_) lines += dpt::step_line(plan_, line);
  lines_.clear();
  for (Item item :
       {Item{.out = false, .text = std::move(lines)}, Item{.out = true, .text = std::move(out)},
        Item{.out = false, .text = std::move(err)}}) {
    if (item.text.empty()) continue;
    item_bytes_ += item.text.size();
    items_.push_back(std::move(item));
  }
  wanted_ = true;
  wake_.notify_all();
  took_.wait(lock, [&] { return item_bytes_ < kMostBytes; });
}

void ProgressDisplay::print_result(const std::string& result, const std::string& position,
                                   const std::string& figures, std::string messages) {
  const std::string line = fmt::format("{} ({})", result, figures);
  const bool fits = !terminal_ || std::ssize(line) < terminal_columns(STDERR_FILENO);
  if (notes_are_silent())
    print(result + "\n", std::move(messages));
  else if (joined_ && fits)
    print(line + "\n", std::move(messages));
  else
    print(result + "\n", (joined_ ? fmt::format("  ({})\n", figures)
                                  : fmt::format("{}: {}\n", position, figures)) +
                             messages);
}

void ProgressDisplay::settle() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      wake_.notify_all();
    }
    thread_.join();
  }
  const std::lock_guard io(io_);
  write_all(false);
  clear_status();
  if (!settings_.file.empty()) std::remove(settings_.file.c_str());
}

}  // namespace dpt
