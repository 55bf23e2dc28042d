#include "train/tensorboard_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/stderr.h"
#include "base/units.h"
#include "session/session.h"
#include "spec/changes.h"
#include "train/metrics_file.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

double utc_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (std::string name = at->path().filename().string(); name.starts_with(kPrefix))
      out.push_back(std::move(name));
  return out;
}

// Later than every file that is there: TensorBoard reads them in the order of their names.
int64_t time_of_name(const std::vector<std::string>& names, double now) {
  auto out = static_cast<int64_t>(now);
  for (const std::string& name : names) {
    int64_t time = 0;
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + kPrefix.size(), end, time).ec == std::errc() && time >= out)
      out = time + 1;
  }
  return out;
}

}  // namespace

TensorBoardLog::TensorBoardLog(std::string folder, const std::optional<Start>& resumed)
    : folder_(std::move(folder)) {
  const double now = utc_s();
  const std::vector<std::string> earlier = event_files(folder_);
  path_ = fmt::format("{}/{}{:010}.{}", folder_, kPrefix, time_of_name(earlier, now), host_name());
  file_ =
      Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) fail_writing(path_);
  pending_ = tensorboard::file_version(now);
  if (resumed && !earlier.empty()) pending_ += tensorboard::session_start(now, resumed->step);
  add_spec(now);
  if (resumed) continue_from(*resumed, !earlier.empty());
  flush();
}

void TensorBoardLog::add_spec(double time) {
  constexpr size_t kMostSpec = kMiB;
  try {
    const std::string spec = read_file(folder_ + "/spec.resolved.yaml", kMostSpec);
    const FlatSpec flat = flatten_spec(spec, registries());
    pending_ += tensorboard::text(time, "spec", spec) +
                tensorboard::settings(time, {flat.begin(), flat.end()});
  } catch (const Error&) {  // a run without it has curves all the same
  }
}

// The points of the checkpoint's own step are dropped with the later ones, and written again.
void TensorBoardLog::continue_from(const Start& start, bool has_earlier) {
  std::ifstream in(folder_ + "/metrics.jsonl", std::ios::binary);
  read_lines(in, [&](std::string_view line, int64_t) {
    const size_t before = pending_.size();
    if (add(line) < start.step && has_earlier) pending_.resize(before);
  });
  if (reader_.steps() == 0) reader_.set_steps(start.step - start.of_epoch);
}

int64_t TensorBoardLog::add(std::string_view line) {
  const auto record = parse_record(line);
  if (!record) return 0;
  const auto scalars = reader_.read(*record);
  if (!scalars) return 0;
  if (!scalars->values.empty())
    pending_ += tensorboard::scalars(record->number("time").value_or(utc_s()), scalars->step,
                                     scalars->values);
  return scalars->step;
}

void TensorBoardLog::flush() {
  for (std::string_view rest = pending_; file_ && !rest.empty();) {
    const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
    if (n > 0) {
      rest.remove_prefix(static_cast<size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      print_stderr("{} cannot be written: {}; the run continues without it\n", path_,
                   std::generic_category().message(n == 0 ? ENOSPC : errno));
      file_.close();
    }
  }
  pending_.clear();
}

void remove_event_files(const std::string& folder) {
  for (const std::string& name : event_files(folder)) {
    std::error_code ignored;
    fs::remove(fs::path(folder) / name, ignored);
  }
}

}  // namespace dpt
