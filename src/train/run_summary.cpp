#include "train/run_summary.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/units.h"
#include "train/metrics_file.h"
#include "train/reporter.h"
#include "train/run_folder.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;           // levels of folders below the searched one
constexpr size_t kMostRuns = 100000;  // per search

bool is_run(const std::string& path) {
  std::error_code error;
  return fs::exists(path + "/spec.resolved.yaml", error) ||
         fs::exists(path + "/metrics.jsonl", error);
}

// Skips folders that it may not read.
void find_below(const std::string& path, int depth, std::vector<std::string>& out) {
  if (is_run(path)) out.push_back(path);
  if (depth == kDeepest) return;
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code unseen;
    if (name.starts_with('.') || name.starts_with("checkpoints") || at->is_symlink(unseen) ||
        !at->is_directory(unseen) || out.size() >= kMostRuns)
      continue;
    find_below(fmt::format("{}{}{}", path, path.ends_with('/') ? "" : "/", name), depth + 1, out);
  }
}

// The lines of metrics.jsonl that are no records.
class BrokenLines {
 public:
  void add(std::string_view text, int64_t number) {
    const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
    if (begin == text.npos) return;
    last_ = number;
    if (text[begin] == '{' && text[end] == '}') return;
    if (first_broken_ == 0) first_broken_ = number;
    ++broken_;
  }

  // The last line may be incomplete: it is being written, or the run was killed.
  std::string problem() const {
    if (broken_ == 0 || (broken_ == 1 && first_broken_ == last_)) return "";
    return fmt::format("metrics.jsonl: {} not a record, first at line {}",
                       counted(broken_, "line is", "lines are"), first_broken_);
  }

 private:
  int64_t broken_ = 0, first_broken_ = 0, last_ = 0;
};

// A count from the spec; empty if the key is missing or not a number.
std::optional<int64_t> count_in(const FlatSpec& spec, const std::string& key) {
  const auto found = spec.find(key);
  if (found == spec.end()) return {};
  int64_t n = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [at, error] = std::from_chars(found->second.data(), end, n);
  return error == std::errc() && at == end ? std::optional(n) : std::nullopt;
}

bool is_finished(const RunSummary& run) {
  if (run.numbers.stopped_early()) return true;
  const auto epochs = count_in(run.spec, "epochs"), steps = count_in(run.spec, "steps");
  if (steps && run.numbers.steps() >= *steps) return true;
  if (epochs) return run.numbers.epochs() >= *epochs;
  return !steps && run.numbers.epochs() >= 1;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Parses "exit code N", followed by the error.
RunState read_failure(RunSummary& run) {
  constexpr size_t kMostBytes = kMiB;
  std::string text;
  try {
    text = read_file(failure_file(run.path), kMostBytes);
  } catch (const Error& e) {
    text = std::string("\n") + e.what();
  }
  const std::string code = first_line(text);
  if (code == fmt::format("exit code {}", static_cast<int>(Fault::diverged)))
    return RunState::diverged;
  if (run.note.empty() && code.size() < text.size())
    run.note = first_line(text.substr(code.size() + 1));
  return RunState::failed;
}

// Checks the lock only if the run is not finished: that takes the lock for an instant.
RunState state_of(RunSummary& run) {
  if (is_finished(run)) return RunState::finished;
  if (is_locked(run.path)) return RunState::running;
  std::error_code error;
  if (fs::exists(failure_file(run.path), error)) return read_failure(run);
  return fs::exists(model_file(run.path), error) ? RunState::stopped : RunState::killed;
}

std::string read_spec(RunSummary& run) {
  try {
    std::string problem;
    run.spec = flatten_spec(read_file(run.path + "/spec.resolved.yaml", size_t{16} << 20),
                            registries(), &problem);
    if (problem.empty()) return "";
    run.spec.clear();
    return "spec.resolved.yaml" + first_line(problem);
  } catch (const Error& e) {
    return first_line(e.what());
  }
}

std::optional<MetricsRecord> read_environment(const std::string& run) {
  try {
    return parse_record(read_file(run + "/env.json", kMiB));
  } catch (const Error&) {
    return {};
  }
}

std::string read_metrics(RunSummary& run) {
  const std::string path = run.path + "/metrics.jsonl";
  std::error_code error;
  if (!fs::exists(path, error)) return "there is no metrics.jsonl";
  if (!fs::is_regular_file(path, error)) return "metrics.jsonl is not a regular file";
  std::ifstream in(path, std::ios::binary);
  if (!in) return "metrics.jsonl cannot be opened";
  BrokenLines broken;
  read_lines(in, [&](std::string_view text, int64_t number) {
    broken.add(text, number);
    run.numbers.add(text);
  });
  run.note = broken.problem();
  return in.bad() ? "metrics.jsonl cannot be read" : "";
}

}  // namespace

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::finished:
      return "finished";
    case RunState::stopped:
      return "stopped";
    case RunState::diverged:
      return "diverged";
    case RunState::failed:
      return "failed";
    case RunState::killed:
      return "killed";
    case RunState::unknown:
      break;
  }
  return "unknown";
}

bool natural_less(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text) {
    const auto end =
        std::ranges::find_if_not(text, [](unsigned char c) { return std::isdigit(c); });
    return text.substr(0, static_cast<size_t>(end - text.begin()));
  };
  while (!a.empty() && !b.empty()) {
    const std::string_view x = digits(a), y = digits(b);
    if (!x.empty() && !y.empty()) {
      const auto value = [](std::string_view n) {
        return n.substr(std::min(n.find_first_not_of('0'), n.size()));
      };
      const std::string_view p = value(x), q = value(y);
      if (p.size() != q.size()) return p.size() < q.size();
      if (p != q) return p < q;
      a.remove_prefix(x.size());
      b.remove_prefix(y.size());
    } else {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

std::vector<std::string> find_runs(const std::string& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error))
    fail(Fault::data, "{} is not a directory; give one that holds runs, such as runs/NAME",
         directory);
  std::vector<std::string> out;
  find_below(directory, 0, out);
  std::ranges::sort(out, natural_less);
  return out;
}

RunSummary summarize_run(const std::string& path) {
  RunSummary run{.path = path, .environment = read_environment(path)};
  std::error_code error;
  const bool has_spec = fs::exists(path + "/spec.resolved.yaml", error);
  const std::string spec = has_spec ? read_spec(run) : "there is no spec.resolved.yaml";
  const std::string metrics = read_metrics(run);
  for (const std::string& problem : {spec, metrics})
    if (!problem.empty()) run.note += (run.note.empty() ? "" : "; ") + problem;
  if (spec.empty()) run.state = state_of(run);
  return run;
}

}  // namespace dpt
