#include "cli/data_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/count.h"
#include "base/one_line.h"
#include "base/utf8.h"

namespace dpt {
namespace {

constexpr size_t kMostRows = 40, kMostFrequent = 20, kNarrowestName = 8, kGap = 2;

// Number of characters, one byte each where the text is not UTF-8.
size_t length_of(std::string_view text) {
  size_t out = 0;
  for (; !text.empty(); ++out) text.remove_prefix(std::max<size_t>(1, utf8_length(text)));
  return out;
}

// At most `columns` characters; the last one says that some are missing.
std::string shortened(const std::string& text, size_t columns) {
  std::string out;
  size_t count = 0;
  for (std::string_view rest = text; !rest.empty(); ++count) {
    const size_t bytes = std::max<size_t>(1, utf8_length(rest));
    if (count + 1 >= columns && bytes < rest.size()) return out + "~";
    const std::string_view character = rest.substr(0, bytes);
    out += utf8_length(rest) == 0 || is_unprintable(character) ? "?" : std::string(character);
    rest.remove_prefix(bytes);
  }
  return out;
}

// Lines of at most `columns` characters, broken at spaces; `indent` begins the first line, two
// spaces the others.
std::string wrapped(const std::string& text, size_t columns, const std::string& indent = "") {
  std::string out, line = indent;
  bool empty = true;
  for (size_t at = 0; at < text.size();) {
    const size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    at = space + 1;
    if (!empty && length_of(line) + 1 + length_of(word) > columns) {
      out += line + "\n";
      line = "  ";
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return out + line + "\n";
}

// A table whose first column has names, left-aligned, and whose others are right-aligned. Names are
// shortened, and the last columns left out, until the lines fit.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { add(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // The width of all lines, after fit().
  size_t width() const {
    size_t out = 0;
    for (size_t i = 0; i < widths_.size(); ++i) out += widths_[i] + (i > 0 ? kGap : 0);
    return out;
  }
  void fit(size_t columns) {
    widths_.assign(rows_[0].size(), 0);
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], length_of(row[i]));
    while (widths_.size() > 2 && width() - widths_[0] + kNarrowestName > columns)
      widths_.pop_back();
    if (width() > columns) {
      const size_t rest = width() - widths_[0];
      widths_[0] = columns > rest + kNarrowestName ? columns - rest : kNarrowestName;
    }
  }
  std::string line(size_t row) const {
    std::string out;
    for (size_t i = 0; i < widths_.size(); ++i) {
      const std::string text = i == 0 ? shortened(rows_[row][i], widths_[i]) : rows_[row][i];
      const std::string fill(widths_[i] - std::min(widths_[i], length_of(text)), ' ');
      out += i == 0 ? text + fill : std::string(kGap, ' ') + fill + text;
    }
    return out;
  }
  size_t rows() const { return rows_.size(); }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

// fraction: of `columns` characters, in eighths of a block.
std::string bar(double fraction, size_t columns, bool ascii) {
  constexpr std::string_view kEighths[] = {"",       "\u258f", "\u258e", "\u258d",
                                           "\u258c", "\u258b", "\u258a", "\u2589"};
  const auto eighths =
      static_cast<size_t>(std::lround(fraction * 8 * static_cast<double>(columns)));
  if (ascii) return std::string((eighths + 4) / 8, '#');
  std::string out;
  for (size_t i = 0; i < eighths / 8; ++i) out += "\u2588";
  return out.append(kEighths[eighths % 8]);
}

std::string without_spaces(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Of classes that are the next characters of a text, the character.
std::string class_name(const Dataset& d, int64_t number) {
  const auto c = static_cast<size_t>(number);
  if (!d.class_names.empty()) return d.class_names[c];
  if (c >= d.characters.size()) return std::to_string(c);
  const char character = d.characters[c];
  if (character == '\n') return "line break";
  if (character < ' ' || character > '~')
    return fmt::format("byte {}", static_cast<int>(static_cast<unsigned char>(character)));
  return fmt::format("'{}'", character);
}

// many: only the most frequent of the classes that occur.
std::vector<int64_t> shown_classes(const ClassCounts& classes, bool many) {
  std::vector<int64_t> out;
  if (!many) {
    out.resize(static_cast<size_t>(classes.classes()));
    std::iota(out.begin(), out.end(), int64_t{0});
    return out;
  }
  for (const auto& occurring : classes.occurring()) out.push_back(occurring.first);
  std::ranges::stable_sort(out, std::ranges::greater{},
                           [&](int64_t c) { return classes.samples(c); });
  out.resize(std::min(out.size(), kMostFrequent));
  return out;
}

std::string classes_text(const Dataset& d, const DataSummary& s, const DataTextStyle& style) {
  constexpr size_t kNarrowestBar = 6, kWidestBar = 60;
  const bool many = s.classes.classes() > static_cast<int64_t>(kMostRows);
  const std::vector<int64_t> shown = shown_classes(s.classes, many);
  int64_t all = 0, most = 0;
  for (const auto& [c, samples] : s.classes.occurring()) {
    all += samples;
    most = std::max(most, samples);
  }
  TextTable table({many ? "class (most frequent)" : "class",
                   d.targets.sample().rank() > 0 ? "targets" : "samples", "share"});
  for (const int64_t c : shown)
    table.add({class_name(d, c), fmt::format("{}", s.classes.samples(c)),
               fmt::format("{:.1f} %", 100 * static_cast<double>(s.classes.samples(c)) /
                                           static_cast<double>(std::max<int64_t>(1, all)))});
  constexpr size_t kRoom = kGap + kNarrowestBar;
  table.fit(std::max(style.columns, kRoom) - kRoom);
  const size_t used = table.width() + kGap;
  const size_t left = std::min(style.columns - std::min(style.columns, used), kWidestBar);
  std::string out = "\n" + without_spaces(table.line(0));
  for (size_t row = 1; row < table.rows(); ++row) {
    const auto count = static_cast<double>(s.classes.samples(shown[row - 1]));
    const double fraction = most > 0 ? count / static_cast<double>(most) : 0;
    out +=
        without_spaces(table.line(row) + std::string(kGap, ' ') + bar(fraction, left, style.ascii));
  }
  if (many) {
    const int64_t rarest = s.classes.rarest();
    out += wrapped(fmt::format("and {} more classes; the rarest is {} with {}",
                               s.classes.classes() - std::ssize(shown), class_name(d, rarest),
                               counted(s.classes.samples(rarest), "sample")),
                   style.columns);
  }
  if (s.ignored > 0)
    out +=
        wrapped(fmt::format("{} not counted: the loss ignores them", counted(s.ignored, "target")),
                style.columns);
  return out;
}

std::string ranges_text(const std::string& title, const std::vector<DataSummary::Values>& values,
                        const DataTextStyle& style) {
  const auto number = [](double x) { return fmt::format("{:.4g}", x); };
  const bool broken = std::ranges::any_of(
      values, [](const DataSummary::Values& v) { return v.range.broken() > 0; });
  std::vector<std::string> header{title, "min", "max", "mean", "std"};
  if (broken) header.insert(header.begin() + 1, "not finite");
  TextTable table(header);
  for (size_t i = 0; i < std::min(values.size(), kMostRows); ++i) {
    const ValueRange& r = values[i].range;
    std::vector<std::string> row{values[i].name, number(r.min()), number(r.max()), number(r.mean()),
                                 number(r.std())};
    if (broken) row.insert(row.begin() + 1, fmt::format("{}", r.broken()));
    table.add(std::move(row));
  }
  table.fit(style.columns);
  std::string out = "\n";
  for (size_t row = 0; row < table.rows(); ++row) out += without_spaces(table.line(row));
  if (values.size() > kMostRows) out += fmt::format("and {} more\n", values.size() - kMostRows);
  return out;
}

std::string missing_text(const DataSummary& s) {
  std::string out = "missing values in the file: ";
  for (size_t i = 0; i < s.missing.size(); ++i)
    out += fmt::format("{}{} {}", i > 0 ? ", " : "", one_line(s.missing[i].column),
                       s.missing[i].fields);
  return out;
}

Json json_of(const std::vector<DataSummary::Values>& values) {
  constexpr int kDigits = 9;
  Json out = Json::array();
  for (const DataSummary::Values& v : values) {
    const ValueRange& r = v.range;
    out.push(Json{{"name", v.name},
                  {"min", Json::rounded(r.min(), kDigits)},
                  {"max", Json::rounded(r.max(), kDigits)},
                  {"mean", Json::rounded(r.mean(), kDigits)},
                  {"std", Json::rounded(r.std(), kDigits)},
                  {"not_finite", r.broken()}});
  }
  return out;
}

}  // namespace

Json data_json(const std::string& name, const Dataset& d, const DataSummary& s) {
  Json out = {{"set", name}, {"samples", s.samples}, {"ranges_of_samples", s.read}};
  out.add("shape", Json::array_of(d.inputs.sample().extents()));
  out.add("type", name_of(d.inputs.desc.dtype));
  out.add("description", d.description);
  Json classes = Json::array(), missing = Json::array();
  const auto add = [&](int64_t c) {
    classes.push(Json{{"name", class_name(d, c)}, {"samples", s.classes.samples(c)}});
  };
  // Of more classes than samples, those that occur.
  if (s.classes.classes() <= std::max<int64_t>(s.samples, kMostRows))
    for (int64_t c = 0; c < s.classes.classes(); ++c) add(c);
  else
    for (const auto& occurring : s.classes.occurring()) add(occurring.first);
  for (const DataSummary::Missing& m : s.missing)
    missing.push(Json{{"column", m.column}, {"samples", m.fields}});
  out.add("classes", std::move(classes));
  out.add("ignored_targets", s.ignored);
  out.add("targets", json_of(s.targets));
  out.add("inputs", json_of(s.inputs));
  return out.add("missing", std::move(missing));
}

std::string data_text(const std::string& name, const Dataset& d, const DataSummary& s,
                      const DataTextStyle& style) {
  std::string out =
      wrapped(fmt::format("{} set: {}, {} {} before {}", name, counted(s.samples, "sample"),
                          d.inputs.sample().str(), name_of(d.inputs.desc.dtype),
                          s.file_units ? "`standardize` and transforms" : "transforms"),
              style.columns) +
      wrapped(d.description, style.columns, "  ");
  if (s.classes.classes() > 0) out += classes_text(d, s, style);
  if (!s.targets.empty()) out += ranges_text("target", s.targets, style);
  out += ranges_text("input", s.inputs, style);
  if (s.read < s.samples)
    out += wrapped(fmt::format("ranges are those of {} of the {}, evenly spread", s.read,
                               counted(s.samples, "sample")),
                   style.columns);
  if (!s.missing.empty()) out += wrapped(missing_text(s), style.columns);
  if (d.tokens > 0)
    out += wrapped(fmt::format("{} of {} occur", s.tokens_used, counted(d.tokens, "token")),
                   style.columns);
  return out;
}

std::string transformed_text(const TensorDesc& sample, const ValueRange& r,
                             const DataTextStyle& style) {
  return wrapped(
      fmt::format("after transforms: {} {}, from {:.4g} to {:.4g}, mean {:.4g}, "
                  "standard deviation {:.4g}",
                  sample.shape.str(), name_of(sample.dtype), r.min(), r.max(), r.mean(), r.std()),
      style.columns);
}

std::string weighted_text(int64_t samples, const DataTextStyle& style) {
  return wrapped(fmt::format("sampler weighted: an epoch draws {} with replacement, all classes "
                             "equally often",
                             counted(samples, "sample")),
                 style.columns);
}

}  // namespace dpt
