#include "report/runs_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/stderr.h"
#include "formats/csv_text.h"
#include "formats/json.h"
#include "report/metric_text.h"
#include "report/run_results.h"
#include "report/text_table.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

constexpr size_t kWidestText = 40;  // characters of a key's value

std::string spec_value(const RunSummary& run, const std::string& key) {
  const auto found = run.spec.find(key);
  return found == run.spec.end() ? "" : found->second;
}

std::string value_of(const RunRow& row, const std::string& column) {
  if (column == "run") return row.name;
  if (row.run.spec.contains(column) && !is_result(column)) return spec_value(row.run, column);
  const Json value = result_value(row.run, column);
  const std::string* const text = value.text();
  return value.is_null() ? "" : text ? *text : value.dump();
}

// The spec's `loss` is no number.
std::string title_of_key(const std::string& key) { return is_result(key) ? "spec." + key : key; }

std::vector<ResultColumn> results_of(const std::vector<RunRow>& rows) {
  std::vector<const RunSummary*> runs;
  for (const RunRow& row : rows) runs.push_back(&row.run);
  return result_columns(runs);
}

std::optional<double> number_in(std::string_view text) {
  double x = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, x);
  return error == std::errc() && at == end && std::isfinite(x) ? std::optional(x) : std::nullopt;
}

std::vector<TextColumn> text_columns(const RunsTable& table) {
  std::vector<TextColumn> out = {
      {.cells = {"run"}, .rank = -1, .name = "run", .cut = TextColumn::Cut::front}};
  for (const RunRow& row : table.rows) out[0].cells.push_back(escape_controls(row.name));
  int number_of_key = 0;
  for (const std::string& key : table.keys) {
    constexpr int kFirstKeys = 3;  // they say more than results do, but for the loss and the state
    const int rank = number_of_key < kFirstKeys ? 1 + number_of_key : 100 + number_of_key;
    ++number_of_key;
    TextColumn c{
        .cells = {escape_controls(title_of_key(key))}, .right = true, .rank = rank, .name = key};
    for (const RunRow& row : table.rows) {
      const std::string value = spec_value(row.run, key);
      c.right = c.right && (value.empty() || number_in(value));
      c.cells.push_back(value.empty() ? "-" : shortened(escape_controls(value), kWidestText));
    }
    out.push_back(std::move(c));
  }
  for (const ResultColumn& r : results_of(table.rows)) {
    if (is_by_label(r.name)) continue;  // the CSV has them
    TextColumn c{.cells = {r.title},
                 .right = !r.text,
                 .rank = r.rank,
                 .name = r.name,
                 .cut = r.name == "note" ? TextColumn::Cut::end : TextColumn::Cut::never,
                 // "best" alone would be read as that of another metric.
                 .with = r.title == "best" ? std::string(without_best(r.name)) : ""};
    std::set<std::string> different;
    for (const RunRow& row : table.rows) {
      const std::string shown = result_text(row.run, r.name);
      different.insert(shown);
      c.cells.push_back(shown.empty() && !r.text ? "-" : escape_controls(shown));
    }
    different.erase("");
    if (different.size() > (r.if_different ? 1 : 0)) out.push_back(std::move(c));
  }
  return out;
}

// A number if the text is one.
Json json_value(const std::string& text) {
  const auto x = number_in(text);
  return x ? Json(*x) : Json(text);
}

}  // namespace

RunsTable make_runs_table(std::vector<RunRow> rows, const std::vector<std::string>& asked) {
  std::map<std::string, std::set<std::string>> values;
  size_t specs = 0;
  std::map<std::string, size_t> counts;
  for (const RunRow& row : rows) {
    specs += row.run.spec.empty() ? 0 : 1;
    for (const auto& [key, value] : row.run.spec) {
      values[key].insert(value);
      ++counts[key];
    }
  }
  RunsTable out;
  const auto is_asked = [&](const std::string& key) {
    return !is_result(key) && std::ranges::find(asked, key) != asked.end();
  };
  for (const auto& [key, different] : values)
    if (is_asked(key) || (key != "out" && (different.size() > 1 || counts[key] < specs)))
      out.keys.push_back(key);
  // Not std::ranges::stable_partition, which clang 14 cannot compile.
  std::stable_partition(out.keys.begin(), out.keys.end(), is_asked);
  std::vector<std::string> results = {"run"};
  for (const ResultColumn& r : results_of(rows)) results.push_back(r.name);
  for (const std::string& key : asked)
    if (!key.empty() && !values.contains(key) && std::ranges::find(results, key) == results.end())
      fail(Fault::spec,
           "'{}' is neither a key in the specs of these runs (such as data.batch_size) nor one of "
           "their results: {}",
           key, fmt::join(results, ", "));
  out.rows = std::move(rows);
  return out;
}

std::string result_named(const std::string& word, const std::vector<RunRow>& rows) {
  std::string name = current_name(word), with_set;
  std::ranges::replace(name, ' ', '.');
  for (const ResultColumn& r : results_of(rows)) {
    if (r.name == name || (r.title == word && word != "best")) return r.name;
    const std::string_view metric = without_best(r.name);
    const bool same = without_set(metric) == without_best(name) &&
                      r.name.starts_with(kBestPrefix) == name.starts_with(kBestPrefix);
    const auto has_it = [&](const RunRow& row) { return !result_value(row.run, r.name).is_null(); };
    if (with_set.empty() && same && std::ranges::any_of(rows, has_it)) with_set = r.name;
  }
  return with_set.empty() ? word : with_set;
}

std::string key_named(const std::string& word, const std::vector<RunRow>& rows) {
  const size_t dot = word.rfind('.');
  if (dot == word.npos) return word;
  const std::string section = word.substr(0, dot + 1), key = word.substr(dot);
  std::string out = word;
  for (const RunRow& row : rows) {
    if (row.run.spec.contains(word)) return word;
    for (const auto& entry : row.run.spec)
      if (entry.first.starts_with(section) && entry.first.ends_with(key)) out = entry.first;
  }
  return out;
}

void sort_rows(RunsTable& table, const std::string& column) {
  const bool metric = is_result(without_best(column));
  const bool high_is_good = metric ? !lower_is_better(column) : column == "samples_per_second";
  std::ranges::stable_sort(table.rows, [&](const RunRow& a, const RunRow& b) {
    const std::string x = value_of(a, column), y = value_of(b, column);
    const auto p = number_in(x), q = number_in(y);
    if (p && q) return high_is_good ? *p > *q : *p < *q;
    if (x.empty() || y.empty()) return y.empty() && !x.empty();
    if (p || q) return p.has_value();
    return natural_less(x, y);
  });
}

std::string runs_text(const RunsTable& table, size_t width) {
  std::vector<TextColumn> columns = text_columns(table);
  std::vector<std::string> left_out;
  if (width > 0) left_out = fit_columns(columns, width);
  return table_text(columns) + left_out_text(std::move(left_out), width);
}

std::string runs_csv(const RunsTable& table) {
  const std::vector<ResultColumn> results = results_of(table.rows);
  std::string out;
  const auto line = [&](const std::string& name, auto&& of_key, auto&& of_result) {
    std::vector<std::string> fields = {csv_text(name)};
    for (const std::string& key : table.keys) fields.push_back(csv_text(of_key(key)));
    for (const ResultColumn& r : results) fields.push_back(csv_text(of_result(r.name)));
    out += fmt::format("{}\n", fmt::join(fields, ","));
  };
  line("run", title_of_key, [](const std::string& result) { return result; });
  for (const RunRow& row : table.rows)
    line(
        row.name, [&](const std::string& key) { return spec_value(row.run, key); },
        [&](const std::string& result) { return value_of(row, result); });
  return out;
}

std::string runs_json(const RunsTable& table) {
  Json::Array rows;
  const std::vector<ResultColumn> results = results_of(table.rows);
  for (const RunRow& row : table.rows) {
    Json spec = Json::object();
    for (const std::string& key : table.keys)
      if (row.run.spec.contains(key)) spec.add(key, json_value(spec_value(row.run, key)));
    Json entry = {{"run", row.name}, {"spec", std::move(spec)}};
    for (const ResultColumn& r : results) entry.add(r.name, result_value(row.run, r.name));
    rows.push_back(rows.empty() ? std::move(entry) : std::move(entry).on_line(2));
  }
  return Json{{"runs", std::move(rows)}}.dump() + "\n";
}

}  // namespace dpt
