#include "data/guess/csv_sets.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/one_line.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// "DIR/test.csv" of "DIR/train.csv" and "test" if there is such a file, else nothing.
std::string file_beside(const std::string& path, std::string_view word) {
  const fs::path file(path);
  std::string stem = file.stem().string();
  const size_t at = stem.rfind("train");
  if (at == stem.npos) return "";
  const size_t length = stem.compare(at, 8, "training") == 0 ? 8 : 5;
  const fs::path other =
      file.parent_path() / (stem.replace(at, length, word) + file.extension().string());
  std::error_code ignored;
  return fs::is_regular_file(other, ignored) ? other.string() : "";
}

// Why a file beside the training file is not used as a set; empty: it is. The test files of
// competitions often have no target.
std::string why_unused(const std::string& file, std::string_view set, const CsvFormat& format,
                       const ScannedColumns& t) {
  const CsvHead head = read_csv_head(file, format);
  if (head.other_delimiter != '\0')
    return fmt::format(
        "{}: {} seems to stand between its fields, where the training file has {}, so it is not "
        "used as a {} set; save it with {}",
        file, delimiter_text(head.other_delimiter), delimiter_text(format.delimiter), set,
        delimiter_text(format.delimiter));
  for (const size_t i : t.targets) {
    const std::string& name = t.head.names[i];
    const bool has = t.head.header ? std::ranges::find(head.names, name) != head.names.end()
                                   : head.columns() == t.head.columns();
    if (!has)
      return fmt::format("{} has no column '{}', so it is not used as a {} set", file,
                         one_line(name), set);
  }
  return "";
}

// The input columns in another file, by their names if both files have a header, else by their
// numbers; none if these differ.
std::vector<size_t> inputs_in(const CsvHead& head, const ScannedColumns& t) {
  std::vector<size_t> out;
  const std::vector<std::string> reasons = reasons_left_out(t);
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (t.is_target(i) || !reasons[i].empty()) continue;
    const auto at = std::ranges::find(head.names, t.head.names[i]) - head.names.begin();
    if (t.head.header && head.header && at < std::ssize(head.names))
      out.push_back(static_cast<size_t>(at));
    else if (!t.head.header && !head.header && head.columns() == t.head.columns())
      out.push_back(i);
  }
  return out;
}

}  // namespace

std::string set_beside(DataGuess& g, const std::string& path, std::string_view set,
                       std::initializer_list<std::string_view> words, const CsvFormat& format,
                       const ScannedColumns& t) {
  for (const std::string_view word : words) {
    const std::string file = file_beside(path, word);
    if (file.empty()) continue;
    const std::string why = why_unused(file, set, format, t);
    if (why.empty()) return file;
    g.notes.push_back(why);
  }
  return "";
}

std::string gaps_beside(const std::string& path, const CsvFormat& format, const ScannedColumns& t) {
  for (const char* word : {"test", "val", "valid", "validation"}) {
    const std::string file = file_beside(path, word);
    if (file.empty()) continue;
    const CsvHead head = read_csv_head(file, format);
    const std::vector<size_t> inputs = inputs_in(head, t);
    bool found = false;
    if (head.other_delimiter == '\0')
      scan_csv(file, format, [&](const CsvLine& line) {
        found = !line.header && lacks_csv_value(line.fields, inputs);
        return !found;
      });
    if (found) return file;
  }
  return "";
}

}  // namespace dpt
