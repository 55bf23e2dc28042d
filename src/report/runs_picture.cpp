// Draws small plots side by side: loss, accuracy and speed by the value of one key.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/fail.h"
#include "report/runs_table.h"
#include "report/svg.h"

namespace dpt {
namespace {

constexpr int kPlotWidth = 330, kHeight = 345;                   // of a plot with its text
constexpr int kLeft = 70, kRight = 20, kTop = 85, kBottom = 60;  // margins around its axes
constexpr const char* kTestColor = "#ee8866";
constexpr const char* kColor = "#4477aa";
constexpr const char* kGrey = "fill=\"#666666\" font-size=\"11\"";

struct Series {
  std::string name, color;
  std::vector<std::pair<double, double>> points;  // x: index of the tick; sorted by x
};

struct Plot {
  std::string title;
  bool from_zero = false;
  std::vector<Series> series;
};

// The distinct values of the key in order, and each row's index into them (-1: no value).
struct Ticks {
  std::vector<std::string> names;
  std::vector<int> of_row;
  std::vector<double> places;  // on the axis, of each name: 0 to names.size() - 1
};

// Places by the logarithm where all values are powers of two or of ten, such as batch sizes, else
// one after another.
std::vector<double> places_of(const std::vector<std::string>& names) {
  const auto last = static_cast<double>(names.size()) - 1;
  std::vector<double> even;
  for (size_t i = 0; i < names.size(); ++i) even.push_back(static_cast<double>(i));
  for (const double base : {2.0, 10.0}) {
    std::vector<double> exponents;
    for (const std::string& name : names) {
      double value = 0;
      const char* const end = name.data() + name.size();
      const auto [at, error] = std::from_chars(name.data(), end, value);
      const double exponent = std::log(value) / std::log(base);
      if (error != std::errc() || at != end || !(value > 0) ||
          std::abs(exponent - std::round(exponent)) > 1e-6)
        break;
      exponents.push_back(std::round(exponent));
    }
    if (exponents.size() < names.size() || names.size() < 2) continue;
    const double first = exponents.front(), range = exponents.back() - first;
    if (range <= 0) continue;
    for (double& e : exponents) e = (e - first) / range * last;
    return exponents;
  }
  return even;
}

// REQUIRES: rows sorted by the key.
Ticks ticks_of(const RunsTable& table, const std::string& key) {
  Ticks out;
  for (const RunRow& row : table.rows) {
    const auto found = row.run.spec.find(key);
    if (found == row.run.spec.end()) {
      out.of_row.push_back(-1);
      continue;
    }
    if (out.names.empty() || out.names.back() != found->second) out.names.push_back(found->second);
    out.of_row.push_back(static_cast<int>(out.names.size()) - 1);
  }
  out.places = places_of(out.names);
  return out;
}

// The distance between 3 to 6 round numbers in a range: 1, 2 or 5 times a power of ten.
double round_step(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 3)));
  for (const double factor : {5.0, 2.0})
    if (factor * power * 3 <= range) return factor * power;
  return power;
}

// The range of the vertical axis.
struct Range {
  double low = 0, high = 1;
  double step() const { return round_step(high - low); }
};

Range range_of(const Plot& plot) {
  std::optional<double> low, high;
  for (const Series& s : plot.series)
    for (const auto& [x, y] : s.points) {
      low = std::min(low.value_or(y), y);
      high = std::max(high.value_or(y), y);
    }
  if (plot.from_zero) low = 0;
  // With nearly equal losses, the axis must not become finer than doubles can resolve.
  const double least = *high == 0 ? 1 : 1e-6 * std::abs(*high);
  const double margin = *high == *low ? std::max(0.1 * std::abs(*high), least)
                                      : std::max(0.08 * (*high - *low), least);
  return {plot.from_zero ? 0 : *low - margin, *high + margin};
}

class Drawing {
 public:
  Drawing(const Plot& plot, const Ticks& ticks, int left)
      : plot_(plot), ticks_(ticks), left_(left), range_(range_of(plot)) {}

  std::string text(const std::string& key) const {
    std::string out = svg::text(left_ + kLeft, kTop - 24, plot_.title, "font-size=\"14\"");
    if (plot_.series.size() > 1) {
      double x = left_ + kLeft;
      for (const Series& s : plot_.series) {
        out += svg::text(x, kTop - 8, s.name, fmt::format("font-size=\"11\" fill=\"{}\"", s.color));
        x += 10 + 7 * static_cast<double>(s.name.size());
      }
    }
    out += vertical_axis() + horizontal_axis(key);
    for (const Series& s : plot_.series) out += curve(s);
    return out;
  }

 private:
  double width() const { return kPlotWidth - kLeft - kRight; }
  double bottom() const { return kHeight - kBottom; }
  double x(double tick) const {
    const auto n = static_cast<double>(ticks_.names.size());
    return left_ + kLeft + width() * (ticks_.places[static_cast<size_t>(tick)] + 0.5) / n;
  }
  double y(double value) const {
    return bottom() - (value - range_.low) / (range_.high - range_.low) * (bottom() - kTop);
  }

  std::string vertical_axis() const {
    std::string out;
    const double step = range_.step();
    const double first = std::ceil(range_.low / step);
    for (double i = first; i * step <= range_.high; ++i) {
      const double at = y(i * step);
      out += svg::line(left_ + kLeft, at, left_ + kPlotWidth - kRight, at, "#dddddd");
      out += svg::text(left_ + kLeft - 8, at + 4, fmt::format("{:.10g}", i == 0 ? 0 : i * step),
                       fmt::format("text-anchor=\"end\" {}", kGrey));
    }
    return out;
  }

  // Labels as many ticks as there is room for.
  std::string horizontal_axis(const std::string& key) const {
    std::string out =
        svg::line(left_ + kLeft, bottom(), left_ + kPlotWidth - kRight, bottom(), "#222222");
    size_t longest = 1;
    for (const std::string& name : ticks_.names) longest = std::max(longest, name.size());
    const double available = 7.0 * static_cast<double>(longest) + 6;
    double free = 0;  // from here on
    for (size_t i = 0; i < ticks_.names.size(); ++i) {
      const double at = x(static_cast<double>(i));
      if (i > 0 && at - available / 2 < free) continue;
      free = at + available / 2;
      out += svg::text(at, bottom() + 18, ticks_.names[i],
                       fmt::format("text-anchor=\"middle\" {}", kGrey));
    }
    return out + svg::text(left_ + kLeft + width() / 2, bottom() + 40, key,
                           "text-anchor=\"middle\" font-size=\"12\"");
  }

  // A line if each value of the key has one run, otherwise only points.
  std::string curve(const Series& s) const {
    std::string path, dots;
    bool single = true;
    for (size_t i = 0; i < s.points.size(); ++i) {
      const auto& [tick, value] = s.points[i];
      single = single && (i == 0 || tick != s.points[i - 1].first);
      path += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ", x(tick), y(value));
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", x(tick),
                          y(value), s.color);
    }
    if (!single) return dots;
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       path, s.color) +
           dots;
  }

  const Plot& plot_;
  const Ticks& ticks_;
  int left_;
  Range range_;
};

}  // namespace

std::string runs_svg(const RunsTable& given, const std::string& key) {
  RunsTable table = given;
  sort_rows(table, key);
  const Ticks ticks = ticks_of(table, key);
  constexpr double kMost = 1e100;  // larger values would overflow the axis
  const auto series = [&](std::string name, std::string color, auto&& value) {
    Series out{.name = std::move(name), .color = std::move(color), .points = {}};
    for (size_t i = 0; i < table.rows.size(); ++i)
      if (const std::optional<double> v = value(table.rows[i].run);
          v && std::abs(*v) < kMost && ticks.of_row[i] >= 0)
        out.points.emplace_back(ticks.of_row[i], *v);
    return out;
  };
  using Run = const RunSummary&;
  std::vector<Plot> plots = {
      {.title = "loss",
       .from_zero = false,
       .series = {series("training", kColor, [](Run r) { return r.loss.last; }),
                  series("evaluation", kTestColor, [](Run r) { return r.test_loss.last; })}},
      {.title = "accuracy in %",
       .from_zero = false,
       .series = {series("evaluation", kTestColor,
                         [](Run r) {
                           return r.accuracy.last ? std::optional(100 * *r.accuracy.last)
                                                  : std::nullopt;
                         })}},
      {.title = "samples per second",
       .from_zero = true,
       .series = {series("training", kColor, [](Run r) { return r.samples_per_second; })}}};
  for (Plot& p : plots) std::erase_if(p.series, [](const Series& s) { return s.points.empty(); });
  std::erase_if(plots, [](const Plot& p) { return p.series.empty(); });
  if (plots.empty()) fail(Fault::data, "no run has both a value of '{}' and a result to draw", key);
  std::string out = svg::begin(kPlotWidth * static_cast<int>(plots.size()), kHeight);
  out += svg::text(20, 26, fmt::format("Results by {}", key), "font-size=\"16\"");
  int left = 0;
  for (const Plot& p : plots) {
    out += Drawing(p, ticks, left).text(key);
    left += kPlotWidth;
  }
  return out + "</svg>\n";
}

}  // namespace dpt
