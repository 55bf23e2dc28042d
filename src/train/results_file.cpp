#include "train/results_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/stderr.h"
#include "formats/csv_text.h"
#include "train/metrics_file.h"
#include "train/metrics_record.h"

namespace dpt {
namespace {

// The record of an epoch; others have no line.
std::optional<MetricsRecord> epoch_in(std::string_view line) {
  if (line.starts_with(R"({"step")")) return {};  // most lines, and not worth parsing
  std::optional<MetricsRecord> out = parse_record(line);
  if (out && out->kind() != RecordKind::epoch) out.reset();
  return out;
}

bool add_columns(std::vector<std::string>& columns, const MetricsRecord& record) {
  bool added = false;
  for (const auto& number : record.numbers)
    if (std::ranges::find(columns, number.first) == columns.end()) {
      columns.push_back(number.first);
      added = true;
    }
  return added;
}

std::string head(const std::vector<std::string>& columns) {
  std::vector<std::string> fields;
  for (const std::string& c : columns) fields.push_back(csv_text(c));
  return fmt::format("{}\n", fmt::join(fields, ","));
}

std::string row(const std::vector<std::string>& columns, const MetricsRecord& record) {
  constexpr int kDigits = 15;  // metrics.jsonl has at most that many; a time has 13
  std::string out;
  for (const std::string& c : columns) {
    if (&c != columns.data()) out += ',';
    if (const auto x = record.number(c); x && std::isfinite(*x))
      out += fmt::format("{:.{}g}", *x, kDigits);
  }
  return out + "\n";
}

}  // namespace

ResultsFile::ResultsFile(std::string folder)
    : folder_(std::move(folder)), path_(folder_ + "/results.csv") {}

void ResultsFile::restore() {
  columns_.clear();
  const std::string metrics = folder_ + "/metrics.jsonl";
  std::ifstream in(metrics, std::ios::binary);
  read_lines(in, [&](std::string_view line, int64_t) {
    if (const auto record = epoch_in(line)) add_columns(columns_, *record);
  });
  if (columns_.empty()) {
    std::remove(path_.c_str());
    return;
  }
  std::string text = head(columns_);
  in.clear();
  in.seekg(0);
  read_lines(in, [&](std::string_view line, int64_t) {
    if (const auto record = epoch_in(line)) text += row(columns_, *record);
  });
  try {
    UnsyncedDisk disk;
    write_file(disk, path_, text);
    failing_ = false;
  } catch (const Error& e) {
    columns_.clear();  // the next epoch tries again
    if (!std::exchange(failing_, true)) print_stderr("{}; the run continues\n", e.what());
  }
}

void ResultsFile::add(std::string_view line) {
  const auto record = epoch_in(line);
  if (!record) return;
  std::vector<std::string> columns = columns_;
  if (columns_.empty() || add_columns(columns, *record) || !append(row(columns_, *record)))
    restore();
}

void ResultsFile::sync(Disk& disk) const {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file) disk.sync(file.get());
}

bool ResultsFile::append(std::string_view text) const {
  // O_NOFOLLOW: the file belongs to the run directory; a link is replaced.
  const Descriptor file(
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return false;
  ssize_t n = -1;
  do n = ::write(file.get(), text.data(), text.size());
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(text.size());
}

}  // namespace dpt
