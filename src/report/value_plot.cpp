#include "report/value_plot.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "report/svg.h"

namespace dpt {
namespace {

constexpr int kLeft = 70, kRight = 20, kTop = 85, kBottom = 60;  // margins around its axes
constexpr const char* kGrey = "fill=\"#666666\" font-size=\"11\"";

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

Range range_of(const ValuePlot& plot) {
  std::optional<double> low, high;
  for (const PlotSeries& s : plot.series)
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
  Drawing(const ValuePlot& plot, const PlotTicks& ticks, int left)
      : plot_(plot), ticks_(ticks), left_(left), range_(range_of(plot)) {}

  std::string text(const std::string& key) const {
    std::string out = svg::text(left_ + kLeft, kTop - 24, plot_.title, "font-size=\"14\"");
    if (plot_.series.size() > 1) {
      double x = left_ + kLeft;
      for (const PlotSeries& s : plot_.series) {
        out += svg::text(x, kTop - 8, s.name, fmt::format("font-size=\"11\" fill=\"{}\"", s.color));
        x += 10 + 7 * static_cast<double>(s.name.size());
      }
    }
    out += vertical_axis() + horizontal_axis(key);
    for (const PlotSeries& s : plot_.series) out += curve(s);
    return out;
  }

 private:
  double width() const { return kPlotWidth - kLeft - kRight; }
  double bottom() const { return kPlotHeight - kBottom; }
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
  std::string curve(const PlotSeries& s) const {
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

  const ValuePlot& plot_;
  const PlotTicks& ticks_;
  int left_;
  Range range_;
};

}  // namespace

PlotTicks ticks_named(std::vector<std::string> names) {
  std::vector<double> places = places_of(names);
  return {.names = std::move(names), .places = std::move(places)};
}

std::string draw_plot(const ValuePlot& plot, const PlotTicks& ticks, int left,
                      const std::string& key) {
  return Drawing(plot, ticks, left).text(key);
}

std::string plot_color(size_t index) {
  constexpr std::array kColors = {"#4477aa", "#ee8866", "#228833", "#aa3377",
                                  "#66ccee", "#ccbb44", "#222222", "#999999"};
  return kColors[index % kColors.size()];
}

}  // namespace dpt
