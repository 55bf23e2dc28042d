#include "data/guess/csv_format.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/fail.h"

namespace dpt {
namespace {

// How a delimiter splits the first lines.
struct FirstLines {
  size_t width = 0;                 // fields of the first line
  size_t wider = 0;                 // the number of the first line with several fields; 0: none
  bool same = true;                 // all lines have so many
  bool has_decimal_commas = false;  // and commas are in numbers only
  std::optional<Error> error{};     // the line after which it stopped
  auto score() const { return std::tuple(same, has_decimal_commas, width); }
};

FirstLines split_by(const std::string& path, char delimiter) {
  constexpr size_t kLines = 20;
  FirstLines out;
  size_t lines = 0;
  bool other_commas = false;
  try {
    CsvRecords records(path, delimiter);
    for (std::vector<CsvField> fields; lines < kLines && records.next(fields); ++lines) {
      if (lines == 0) out.width = fields.size();
      if (out.wider == 0 && fields.size() > 1) out.wider = records.line();
      out.same = out.same && fields.size() == out.width;
      for (const CsvField& f : fields) {
        if (f.text.find(',') == f.text.npos) continue;
        (has_csv_separators(f.text, '.') ? out.has_decimal_commas : other_commas) = true;
      }
    }
  } catch (const Error& e) {
    out.error = e;
  }
  out.has_decimal_commas = out.has_decimal_commas && !other_commas && delimiter != ',';
  return out;
}

bool begins_with_hash(const std::string& path) {
  CsvRecords records(path, ',');
  std::vector<CsvField> fields;
  return records.next(fields) && fields[0].text.starts_with('#');
}

// The one that makes the most fields; those that make equally many in all lines come first, and of
// these the one beside which commas are decimal marks.
char delimiter_of(const std::string& path) {
  char best = ',';
  FirstLines most;
  std::optional<Error> error;
  size_t wider = 0;
  for (const char c : {',', ';', '\t', '|'}) {
    const FirstLines s = split_by(path, c);
    if (!error) error = s.error;
    if (s.wider > 0 && (wider == 0 || s.wider < wider)) wider = s.wider;
    if (s.width > 1 && (most.width == 0 || s.score() > most.score())) best = c, most = s;
  }
  if (most.width > 0) error = most.error;
  if (error) throw Error(*error);
  if (most.width > 0) return best;
  if (open_bytes(path)->most_bytes() == 0) fail(Fault::data, "{} is empty", path);
  if (wider > 0)
    fail(Fault::data,
         "{}:1:1: the first line has no , ; tab or | between two fields, but line {} has; delete "
         "the lines above it if they are {}",
         path, wider, begins_with_hash(path) ? "comments" : "a title");
  fail(Fault::data,
       "{} is not a table: its first line has no , ; tab or | between two fields; make it a CSV "
       "with one sample per line",
       path);
}

// Numbers with each decimal mark in a column. Those with three digits behind it could be thousands.
struct Marks {
  bool comma = false, point = false, sure_comma = false, sure_point = false;
};

bool has_three_digits_behind(std::string_view text, char mark) {
  const size_t at = text.rfind(mark);
  return text.size() - at == 4 && !text.starts_with("0") && !text.starts_with("-0");
}

// A comma where another character stands between fields, unless more columns have points.
char decimal_of(const std::string& path, char delimiter) {
  constexpr size_t kLines = 10000;
  if (delimiter == ',') return '.';
  CsvRecords records(path, delimiter);
  std::vector<CsvField> fields;
  std::vector<Marks> columns;
  for (size_t i = 0; i < kLines && records.next(fields); ++i) {
    columns.resize(std::max(columns.size(), fields.size()));
    for (size_t c = 0; c < fields.size(); ++c) {
      double ignored = 0;
      const std::string_view text = fields[c].text;
      if (text.find('.') != text.npos && parse_csv_number(text, ignored)) {
        columns[c].point = true;
        if (!has_three_digits_behind(text, '.')) columns[c].sure_point = true;
      } else if (text.find(',') != text.npos && parse_csv_number(text, ignored, ',')) {
        columns[c].comma = true;
        if (!has_three_digits_behind(text, ',')) columns[c].sure_comma = true;
      }
    }
  }
  const auto points = std::ranges::count_if(columns, &Marks::sure_point);
  const auto commas = std::ranges::count_if(columns, &Marks::sure_comma);
  if (points + commas > 0) return commas >= points ? ',' : '.';
  return std::ranges::any_of(columns, &Marks::point)   ? '.'
         : std::ranges::any_of(columns, &Marks::comma) ? ','
                                                       : '.';
}

}  // namespace

CsvFormat guess_csv_format(const std::string& path, CsvFormat::HeaderLine header, char decimal) {
  const char delimiter = delimiter_of(path);
  return {.delimiter = delimiter,
          .decimal = decimal != '\0' ? decimal : decimal_of(path, delimiter),
          .header = header};
}

}  // namespace dpt
