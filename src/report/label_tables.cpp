#include "report/label_tables.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "report/html.h"
#include "report/metric_text.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// rows[0] has the titles. Returns the row or column with this title, a new one if there is none.
size_t column_of(Rows& rows, const std::string& title) {
  const auto found = std::ranges::find(rows[0], title);
  const auto at = static_cast<size_t>(found - rows[0].begin());
  if (found == rows[0].end()) rows[0].push_back(title);
  return at;
}

size_t row_of(Rows& rows, const std::string& title) {
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i][0] == title) return i;
  rows.push_back({title});
  return rows.size() - 1;
}

}  // namespace

std::string label_tables(const RunCurves& curves) {
  std::string out;
  for (const std::string_view set : kMetricSets) {
    Rows rows = {{"label"}};
    for (const Curve& c : curves.curves()) {
      if (set_of(c.tag) != set || !is_by_label(c.tag)) continue;
      const std::string_view name = without_set(c.tag);
      const size_t column = column_of(rows, std::string(without_label(name)));
      std::vector<std::string>& row = rows[row_of(rows, std::string(label_of(name)))];
      row.resize(std::max(row.size(), column + 1), "-");
      if (const auto last = c.last()) row[column] = value_text(c.tag, *last);
    }
    if (rows.size() < 2) continue;
    for (std::vector<std::string>& row : rows) row.resize(rows[0].size(), "-");
    out += fmt::format("<p class=\"soft\">Last evaluation of the {} set.</p>\n{}", set,
                       html::table(rows, 1));
  }
  return out;
}

}  // namespace dpt
