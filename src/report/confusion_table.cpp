#include "report/confusion_table.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "report/html.h"

namespace dpt {
namespace {

constexpr size_t kMostClasses = 60;

using Rows = std::vector<std::vector<std::string>>;

// The fields of CSV (RFC 4180).
Rows fields_of(const std::string& csv) {
  Rows out;
  std::string field;
  std::vector<std::string> row;
  bool quoted = false;
  const auto end_row = [&] {
    row.push_back(std::exchange(field, ""));
    if (row.size() > 1 || !row[0].empty()) out.push_back(row);
    row.clear();
  };
  for (size_t i = 0; i < csv.size(); ++i) {
    const char c = csv[i];
    const bool pair = quoted && c == '"' && i + 1 < csv.size() && csv[i + 1] == '"';
    if (c == '"' && !pair) {
      quoted = !quoted;
    } else if (quoted) {
      field += c;
      i += pair ? 1 : 0;
    } else if (c == ',') {
      row.push_back(std::exchange(field, ""));
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      field += c;
    }
  }
  if (!field.empty() || !row.empty()) end_row();
  return out;
}

std::optional<double> count_in(const std::string& text) {
  double x = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, x);
  return error == std::errc() && at == end && x >= 0 ? std::optional(x) : std::nullopt;
}

struct Matrix {
  std::vector<std::string> names;
  std::vector<std::vector<double>> counts;  // [actual][predicted]
};

std::optional<Matrix> matrix_of(const std::string& csv) {
  const Rows rows = fields_of(csv);
  if (rows.empty() || rows[0].empty()) return {};
  const size_t named = count_in(rows[0][0]) ? 0 : 1;  // rows and columns of names
  const size_t classes = rows.size() - named;
  if (classes == 0 || classes > kMostClasses) return {};
  Matrix out;
  for (size_t i = 0; i < classes; ++i) {
    const auto& row = rows[i + named];
    if (row.size() != classes + named) return {};
    out.names.push_back(named > 0 ? row[0] : fmt::format("{}", i));
    auto& counts = out.counts.emplace_back();
    for (size_t k = 0; k < classes; ++k) {
      const auto count = count_in(row[k + named]);
      if (!count) return {};
      counts.push_back(*count);
    }
  }
  return out;
}

}  // namespace

std::string confusion_table(const std::string& csv) {
  const auto matrix = matrix_of(csv);
  if (!matrix) return "";
  std::string out =
      "<p class=\"soft\">Rows: actual class. Columns: predicted class. Samples of the last "
      "evaluation.</p>\n<div class=\"wide\"><table class=\"heat\">\n<tr><th></th>";
  for (const std::string& name : matrix->names) out += fmt::format("<th>{}</th>", html::text(name));
  out += "<th>right</th></tr>\n";
  double right = 0, all = 0;
  for (size_t i = 0; i < matrix->names.size(); ++i) {
    const auto& row = matrix->counts[i];
    double total = 0;
    for (const double count : row) total += count;
    right += row[i];
    all += total;
    out += fmt::format("<tr><th>{}</th>", html::text(matrix->names[i]));
    for (const double count : row) {
      constexpr double kDarkest = 0.8;
      out += count > 0 ? fmt::format(
                             "<td style=\"background:rgba(var(--heat),{:.3f})\">{:.15g}"
                             "</td>",
                             0.08 + (kDarkest - 0.08) * count / total, count)
                       : "<td>0</td>";
    }
    out += total > 0 ? fmt::format("<td>{:.1f} %</td></tr>\n", 100 * row[i] / total)
                     : "<td></td></tr>\n";
  }
  out += "</table></div>\n";
  if (all > 0)
    out += fmt::format("<p>{:.15g} of {:.15g} samples are right: {:.2f} %.</p>\n", right, all,
                       100 * right / all);
  return out;
}

}  // namespace dpt
