#include "data/readers/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/fail.h"
#include "data/readers/bytes.h"

namespace dpt {
namespace {

std::string read_text(const std::string& path) {
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  if (source->compressed())
    fail(Fault::data, "{} is compressed; unpack it with gunzip first",
         path);  // no size is announced
  std::string text(source->most_bytes(), '\0');
  source->read(std::as_writable_bytes(std::span(text)), "the text");
  source->expect_end();
  return text;
}

struct Field {
  std::string_view text;  // without quotes and the spaces around it
  size_t column = 0;      // of its first character, from 1
};

class Reader {
 public:
  Reader(std::string path, std::string_view text, const CsvFormat& format)
      : path_(std::move(path)), text_(text), format_(format) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // a byte order mark
  }

  CsvTable read() {
    CsvTable table;
    std::vector<Field> fields;
    while (next_line(fields)) {
      if (table.names.empty()) {
        const bool header = is_header(fields);
        for (size_t i = 0; i < fields.size(); ++i)
          table.names.push_back(header ? std::string(fields[i].text) : std::to_string(i));
        if (header) continue;
      }
      if (fields.size() != table.columns())
        fail(Fault::data, "{}:{}:1: {} fields, where the first line has {}", path_, line_,
             fields.size(), table.columns());
      for (const Field& f : fields) table.values.push_back(number(f));
      ++table.rows;
    }
    if (table.rows == 0 && odd_.column > 0)
      fail(Fault::data,
           "{}:{}:{}: '{}' is not a finite number, so this line, the only one, was taken for the "
           "names of the columns; {} holds no numbers",
           path_, line_, odd_.column, odd_.text.substr(0, 40), path_);
    if (table.rows == 0) fail(Fault::data, "{} holds no numbers", path_);
    return table;
  }

 private:
  // False at the end of the text. Lines end with \n or \r\n.
  bool next_line(std::vector<Field>& fields) {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      split(line, fields);
      return true;
    }
    return false;
  }

  void split(std::string_view line, std::vector<Field>& fields) const {
    fields.clear();
    for (size_t at = 0;;) {
      size_t begin = line.find_first_not_of(' ', at);
      if (begin == std::string_view::npos) begin = line.size();
      size_t end = 0;
      if (begin < line.size() && line[begin] == '"') {
        end = line.find('"', begin + 1);
        if (end == std::string_view::npos)
          fail(Fault::data, "{}:{}:{}: a quote that is not closed on its line", path_, line_,
               begin + 1);
        fields.push_back({line.substr(begin + 1, end - begin - 1), begin + 1});
        end = line.find_first_not_of(' ', end + 1);
        if (end != std::string_view::npos && line[end] != format_.delimiter)
          fail(Fault::data, "{}:{}:{}: text after a quoted field", path_, line_, end + 1);
      } else {
        end = line.find(format_.delimiter, at);
        std::string_view text =
            line.substr(begin, std::max(std::min(end, line.size()), begin) - begin);
        while (text.ends_with(' ')) text.remove_suffix(1);
        fields.push_back({text, begin + 1});
      }
      if (end == std::string_view::npos) return;
      at = end + 1;
    }
  }

  bool is_header(const std::vector<Field>& fields) {
    if (format_.header != CsvFormat::HeaderLine::automatic)
      return format_.header == CsvFormat::HeaderLine::yes;
    float ignored = 0;
    const auto odd =
        std::ranges::find_if(fields, [&](const Field& f) { return !parse(f.text, ignored); });
    if (odd != fields.end()) odd_ = *odd;
    return odd != fields.end();
  }

  static bool parse(std::string_view text, float& out) {
    if (text.starts_with('+')) text.remove_prefix(1);
    double value = 0;  // then rounded, as numpy does
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    out = static_cast<float>(value);
    return error == std::errc() && end == text.data() + text.size() && std::isfinite(out);
  }

  float number(const Field& f) const {
    float value = 0;
    if (!parse(f.text, value))
      fail(Fault::data, "{}:{}:{}: '{}' is not a finite number", path_, line_, f.column,
           f.text.substr(0, 40));
    return value;
  }

  std::string path_;
  std::string_view text_;  // what is left
  CsvFormat format_;
  size_t line_ = 0;
  Field odd_;  // what made the first line a header
};

}  // namespace

size_t CsvTable::column(std::string_view name, const std::string& path) const {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  int64_t number = 0;
  const auto count = static_cast<int64_t>(columns());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size() && number >= -count &&
      number < count)
    return static_cast<size_t>(number < 0 ? number + count : number);
  fail(Fault::data, "{} has no column '{}'; its {} columns are {}", path, name, count,
       fmt::join(std::span(names).first(std::min<size_t>(columns(), 30)), ", "));
}

CsvTable read_csv(const std::string& path, const CsvFormat& format) {
  const std::string text = read_text(path);
  return Reader(path, text, format).read();
}

}  // namespace dpt
