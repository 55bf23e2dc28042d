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
#include "report/text_table.h"

namespace dpt {
namespace {

constexpr size_t kWidestText = 40;  // characters of a key's value

// A result column: its name and value in CSV and JSON, and its title and text for people.
struct Result {
  std::string_view name, title;
  int rank;  // if the table is too wide, the column with the highest rank is dropped first
  Json (*value)(const RunSummary&);  // null: no value
  std::string (*shown)(const RunSummary&);
  bool text = false;
  bool if_different = false;  // the text table has the column only if its cells differ
};

Json number(std::optional<double> x) {
  return x && std::isfinite(*x) ? Json::rounded(*x, 9) : Json();
}
std::string loss(std::optional<double> x) { return x ? fmt::format("{:.4f}", *x) : ""; }
std::string percent(std::optional<double> x) { return x ? fmt::format("{:.2f} %", 100 * *x) : ""; }
std::string seconds(double x) { return x > 0 ? fmt::format("{:.2f}", x) : ""; }
std::string rate(std::optional<double> x) { return x ? fmt::format("{:.0f}", *x) : ""; }
std::string state(const RunSummary& r) { return std::string(name_of(r.state)); }

using Run = const RunSummary&;

// A count in env.json, which also holds what a launcher chose.
Json count(Run r, std::string_view key) {
  const auto x = r.environment ? r.environment->number(key) : std::nullopt;
  return x ? Json::decimals(*x, 0) : Json();
}
std::string count_text(Run r, std::string_view key) {
  const Json x = count(r, key);
  return x.is_null() ? "" : x.dump();
}

const Result kResults[] = {
    {"ranks", "ranks", 2, [](Run r) { return count(r, "ranks"); },
     [](Run r) { return count_text(r, "ranks"); }, false, true},
    {"workers", "workers", 2, [](Run r) { return count(r, "workers"); },
     [](Run r) { return count_text(r, "workers"); }, false, true},
    {"hosts", "hosts", 2, [](Run r) { return count(r, "hosts"); },
     [](Run r) { return count_text(r, "hosts"); }, false, true},
    {"epochs_done", "epochs done", 6, [](Run r) { return Json(r.epochs); },
     [](Run r) { return fmt::format("{}", r.epochs); }},
    {"last_loss", "loss", 0, [](Run r) { return number(r.loss.last); },
     [](Run r) { return loss(r.loss.last); }},
    {"best_loss", "best", 10, [](Run r) { return number(r.loss.best); },
     [](Run r) { return loss(r.loss.best); }},
    {"last_test_loss", "test loss", 7, [](Run r) { return number(r.test_loss.last); },
     [](Run r) { return loss(r.test_loss.last); }},
    {"best_test_loss", "best", 11, [](Run r) { return number(r.test_loss.best); },
     [](Run r) { return loss(r.test_loss.best); }},
    {"last_accuracy", "accuracy", 4, [](Run r) { return number(r.accuracy.last); },
     [](Run r) { return percent(r.accuracy.last); }},
    {"best_accuracy", "best", 9, [](Run r) { return number(r.accuracy.best); },
     [](Run r) { return percent(r.accuracy.best); }},
    {"last_validation_loss", "validation loss", 3,
     [](Run r) { return number(r.validation_loss.last); },
     [](Run r) { return loss(r.validation_loss.last); }},
    {"best_validation_loss", "best", 13, [](Run r) { return number(r.validation_loss.best); },
     [](Run r) { return loss(r.validation_loss.best); }},
    {"last_validation_accuracy", "validation accuracy", 2,
     [](Run r) { return number(r.validation_accuracy.last); },
     [](Run r) { return percent(r.validation_accuracy.last); }},
    {"best_validation_accuracy", "best", 1,
     [](Run r) { return number(r.validation_accuracy.best); },
     [](Run r) { return percent(r.validation_accuracy.best); }},
    {"seconds", "seconds", 8, [](Run r) { return number(r.seconds); },
     [](Run r) { return seconds(r.seconds); }},
    {"samples_per_second", "samples/s", 5, [](Run r) { return number(r.samples_per_second); },
     [](Run r) { return rate(r.samples_per_second); }},
    {"state", "state", 0, [](Run r) { return Json(name_of(r.state)); }, state, true},
    {"note", "note", 12, [](Run r) { return Json(r.note); }, [](Run r) { return r.note; }, true},
};

std::string spec_value(const RunSummary& run, const std::string& key) {
  const auto found = run.spec.find(key);
  return found == run.spec.end() ? "" : found->second;
}

std::string value_of(const RunRow& row, const std::string& column) {
  if (column == "run") return row.name;
  const auto result = std::ranges::find(kResults, column, &Result::name);
  if (result == std::end(kResults)) return spec_value(row.run, column);
  const Json value = result->value(row.run);
  const std::string* const text = value.text();
  return value.is_null() ? "" : text ? *text : value.dump();
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
    TextColumn c{.cells = {escape_controls(key)}, .right = true, .rank = rank, .name = key};
    for (const RunRow& row : table.rows) {
      const std::string value = spec_value(row.run, key);
      c.right = c.right && (value.empty() || number_in(value));
      c.cells.push_back(value.empty() ? "-" : shortened(escape_controls(value), kWidestText));
    }
    out.push_back(std::move(c));
  }
  for (const Result& r : kResults) {
    TextColumn c{.cells = {std::string(r.title)},
                 .right = !r.text,
                 .rank = r.rank,
                 .name = std::string(r.name),
                 .cut = r.name == "note" ? TextColumn::Cut::end : TextColumn::Cut::never};
    std::set<std::string> different;
    for (const RunRow& row : table.rows) {
      const std::string shown = r.shown(row.run);
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

std::vector<std::string> result_columns() {
  std::vector<std::string> out = {"run"};
  for (const Result& r : kResults) out.emplace_back(r.name);
  return out;
}

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
  for (const auto& [key, different] : values)
    if (std::ranges::find(asked, key) != asked.end() ||
        (key != "out" && (different.size() > 1 || counts[key] < specs)))
      out.keys.push_back(key);
  // Not std::ranges::stable_partition, which clang 14 cannot compile.
  std::stable_partition(out.keys.begin(), out.keys.end(), [&](const std::string& key) {
    return std::ranges::find(asked, key) != asked.end();
  });
  const auto results = result_columns();
  for (const std::string& key : asked)
    if (!key.empty() && !values.contains(key) && std::ranges::find(results, key) == results.end())
      fail(Fault::spec,
           "'{}' is neither a key in the specs of these runs (such as data.batch_size) nor one of "
           "their results: {}",
           key, fmt::join(results, ", "));
  out.rows = std::move(rows);
  return out;
}

std::string result_named(const std::string& word) {
  for (const Result& r : kResults)
    if (r.title == word || (r.name.starts_with("last_") && r.name.substr(5) == word))
      return std::string(r.name);
  return word;
}

void sort_rows(RunsTable& table, const std::string& column) {
  const bool high_is_good = column.ends_with("_accuracy") || column == "samples_per_second";
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
  std::vector<std::string> columns = {"run"};
  columns.insert(columns.end(), table.keys.begin(), table.keys.end());
  for (const Result& r : kResults) columns.emplace_back(r.name);
  std::string out;
  const auto line = [&](auto&& field) {
    std::vector<std::string> fields;
    for (const std::string& c : columns) fields.push_back(csv_text(field(c)));
    out += fmt::format("{}\n", fmt::join(fields, ","));
  };
  line([](const std::string& c) { return c; });
  for (const RunRow& row : table.rows) line([&](const std::string& c) { return value_of(row, c); });
  return out;
}

std::string runs_json(const RunsTable& table) {
  Json::Array rows;
  for (const RunRow& row : table.rows) {
    Json spec = Json::object();
    for (const std::string& key : table.keys)
      if (row.run.spec.contains(key)) spec.add(key, json_value(spec_value(row.run, key)));
    Json entry = {{"run", row.name}, {"spec", std::move(spec)}};
    for (const Result& r : kResults) entry.add(std::string(r.name), r.value(row.run));
    rows.push_back(rows.empty() ? std::move(entry) : std::move(entry).on_line(2));
  }
  return Json{{"runs", std::move(rows)}}.dump() + "\n";
}

}  // namespace dpt
