#include "report/line_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/status_line.h"
#include "report/html.h"
#include "spec/source.h"

namespace dpt {
namespace {

constexpr double kWidth = 480, kHeight = 260;
constexpr double kLeft = 66, kRight = 12, kTop = 10, kBottom = 40;  // margins around the axes
constexpr double kMost = 1e100;   // larger values would overflow the axis
constexpr size_t kMostDots = 40;  // points of a curve that have dots with their values

struct Axis {
  double low = 0, high = 0;
  bool any = false;
  void add(double x) {
    low = any ? std::min(low, x) : x;
    high = any ? std::max(high, x) : x;
    any = true;
  }
  // Makes room around equal values, and a margin.
  void widen(bool from_zero) {
    const double least = high == 0 ? 1 : 1e-6 * std::abs(high);
    const double margin =
        high == low ? std::max(0.1 * std::abs(high), least) : std::max(0.05 * (high - low), least);
    low = from_zero && low >= 0 ? 0 : low - margin;
    high += margin;
  }
  double step() const {
    const double range = high - low, power = std::pow(10, std::floor(std::log10(range / 3)));
    for (const double factor : {5.0, 2.0})
      if (factor * power * 3 <= range) return factor * power;
    return power;
  }
};

std::string label(double value) {
  constexpr double kLong = 10'000, kTiny = 1e-4;
  if (std::abs(value) >= kLong) return rounded_short(value);
  const bool tiny = value != 0 && std::abs(value) < kTiny;
  return tiny ? fmt::format("{:.0e}", value) : fmt::format("{:.5g}", value);
}

bool finite(double y) { return std::isfinite(y) && std::abs(y) < kMost; }

class Drawing {
 public:
  explicit Drawing(const LineChart& chart) : chart_(chart) {
    for (const ChartCurve& c : chart.curves)
      for (const CurvePoint& p : *c.points) {
        if (!finite(p.value)) continue;
        x_.add(p.step / c.x_scale);
        y_.add(p.value * chart.y_factor);
      }
    if (!y_.any) return;
    if (!chart.tick_places.empty()) {
      x_.add(chart.tick_places.front() - 0.5);
      x_.add(chart.tick_places.back() + 0.5);
    }
    if (x_.high == x_.low) x_.high = x_.low + 1, x_.low -= 1;
    y_.widen(chart.from_zero);
  }

  bool any() const { return y_.any; }

  std::string svg() const {
    std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                  kWidth, kHeight, html::text(chart_.title));
    out += axes();
    for (const bool thin : {true, false})
      for (const ChartCurve& c : chart_.curves)
        if (c.thin == thin) out += curve(c);
    return out + "</svg>\n";
  }

 private:
  double x(double value) const {
    return kLeft + (value - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - (value - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }

  std::string axes() const {
    std::string out;
    const double bottom = kHeight - kBottom, step = y_.step();
    for (double i = std::ceil(y_.low / step); i * step <= y_.high; ++i) {
      const double at = y(i * step);
      out += fmt::format(
          "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          kLeft, kWidth - kRight, at, kLeft - 6, at + 4, label(i == 0 ? 0 : i * step));
    }
    out += ticks(bottom);
    return out + fmt::format(
                     "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>"
                     "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"middle\">{5}</text>\n",
                     kLeft, kWidth - kRight, bottom, (kLeft + kWidth - kRight) / 2, kHeight - 4,
                     html::text(chart_.x_name));
  }

  // As many names as there is room for, in the larger letters of narrow screens.
  std::string ticks(double bottom) const {
    constexpr double kLetter = 8.7;
    std::string out;
    double free = 0;  // from here on
    const auto tick = [&](double place, const std::string& name) {
      const double at = x(place), half = kLetter * static_cast<double>(name.size()) / 2;
      out += fmt::format(
          "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>", at,
          bottom, bottom + 4);
      if (at - half < free) return;
      free = at + half + kLetter / 2;
      const bool at_end = at + half > kWidth;
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                         at_end ? kWidth : at, bottom + 18, at_end ? "end" : "middle",
                         html::text(name));
    };
    for (size_t i = 0; i < chart_.tick_names.size(); ++i)
      tick(chart_.tick_places[i], chart_.tick_names[i]);
    if (!chart_.tick_names.empty()) return out;
    // Epochs and steps are whole numbers.
    const double step = std::max(1.0, Axis{x_.low, x_.high, true}.step());
    for (double i = std::ceil(x_.low / step); i * step <= x_.high; ++i)
      tick(i * step, label(i == 0 ? 0 : i * step));
    return out;
  }

  // The smallest and the largest of each column, in their order.
  std::vector<CurvePoint> thinned(const ChartCurve& c) const {
    std::vector<CurvePoint> out;
    const std::vector<CurvePoint>& all = *c.points;
    if (all.size() <= static_cast<size_t>(kWidth)) return all;
    const auto column = [&](const CurvePoint& p) { return std::floor(x(p.step / c.x_scale)); };
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      size_t low = begin, high = begin;
      for (end = begin; end < all.size() && column(all[end]) == column(all[begin]); ++end) {
        if (!(all[end].value >= all[low].value)) low = end;
        if (!(all[end].value <= all[high].value)) high = end;
      }
      out.push_back(all[std::min(low, high)]);
      if (low != high) out.push_back(all[std::max(low, high)]);
    }
    return out;
  }

  // Points that are not finite are gaps.
  std::string curve(const ChartCurve& c) const {
    std::string path, dots;
    bool gap = true;
    for (const CurvePoint& p : thinned(c)) {
      if (!finite(p.value)) {
        gap = true;
        continue;
      }
      const double px = x(p.step / c.x_scale), py = y(p.value * chart_.y_factor);
      path += fmt::format("{}{:.1f} {:.1f}", gap ? "M" : "L", px, py);
      gap = false;
      if (c.points->size() <= kMostDots || c.dots)
        dots += fmt::format(
            "<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{} {}: "
            "{:.6g}</title>"
            "</circle>",
            c.color % 8, px, py, c.points->size() == 1 ? 4 : 3, html::text(chart_.x_name),
            html::text(name_of(p.step / c.x_scale)), p.value * chart_.y_factor);
    }
    if (path.empty()) return "";
    if (c.dots) return dots + "\n";
    return fmt::format("<path class=\"curve {}{}\"{} d=\"{}\"/>{}\n", html::color_class(c.color),
                       c.thin || c.points->size() > static_cast<size_t>(kWidth) ? " thin" : "",
                       c.dashed ? " stroke-dasharray=\"6 4\"" : "", path, dots);
  }

  // For a place on the horizontal axis.
  std::string name_of(double place) const {
    const auto tick = std::ranges::find(chart_.tick_places, place);
    return tick == chart_.tick_places.end()
               ? fmt::format("{:.6g}", place)
               : chart_.tick_names[static_cast<size_t>(tick - chart_.tick_places.begin())];
  }

  const LineChart& chart_;
  Axis x_, y_;
};

std::string sample_of(const ChartCurve& c) {
  if (c.dots) return fmt::format("<circle class=\"f{}\" cx=\"12\" cy=\"5\" r=\"4\"/>", c.color % 8);
  return fmt::format("<path class=\"curve {}{}\"{} d=\"M0 5L24 5\"/>", html::color_class(c.color),
                     c.thin ? " thin" : "", c.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

std::string legend(const LineChart& chart) {
  std::string out = "<div class=\"legend\">";
  for (const ChartCurve& c : chart.curves)
    out += fmt::format("<span><svg viewBox=\"0 0 24 10\">{}</svg>{}</span>", sample_of(c),
                       html::text(c.name));
  return out + "</div>\n";
}

// A legend within a picture, in as many lines as its names need, from (0, 0) down.
struct DrawnLegend {
  std::string text;
  double height = 0;
};

DrawnLegend drawn_legend(const LineChart& chart) {
  constexpr double kLetter = 7.5, kLine = 18, kSample = 30, kGap = 16;
  DrawnLegend out;
  if (chart.curves.size() < 2) return out;
  double x = 0;
  out.height = kLine;
  for (const ChartCurve& c : chart.curves) {
    const double width = kSample + kLetter * static_cast<double>(code_points(c.name));
    if (x > 0 && x + width > kWidth) {
      x = 0;
      out.height += kLine;
    }
    out.text += fmt::format(
        "<g transform=\"translate({:.1f} {:.1f})\">{}<text x=\"{}\" y=\"9\">{}</text></g>\n", x,
        out.height - 12, sample_of(c), kSample, html::text(c.name));
    x += width + kGap;
  }
  return out;
}

}  // namespace

std::string line_chart(const LineChart& chart) {
  const Drawing drawing(chart);
  if (!drawing.any()) return "";
  return fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}{}</figure>\n",
                     html::text(chart.title), chart.curves.size() > 1 ? legend(chart) : "",
                     drawing.svg());
}

std::string line_charts(const std::vector<LineChart>& charts) {
  std::string out;
  for (const LineChart& c : charts) out += line_chart(c);
  return out.empty() ? "" : "<div class=\"charts\">\n" + out + "</div>\n";
}

std::string charts_svg(const std::vector<LineChart>& charts) {
  constexpr double kTitle = 24, kGap = 20;
  std::vector<const LineChart*> drawn;
  double legends = 0;  // the height of the highest
  for (const LineChart& c : charts) {
    if (!Drawing(c).any()) continue;
    drawn.push_back(&c);
    legends = std::max(legends, drawn_legend(c).height);
  }
  if (drawn.empty()) return "";
  const size_t columns = drawn.size() == 4 ? 2 : std::min<size_t>(3, drawn.size());
  const size_t lines = (drawn.size() + columns - 1) / columns;
  const double line = kTitle + legends + kHeight + kGap;
  const double width = kGap + static_cast<double>(columns) * (kWidth + kGap);
  const double height = kGap / 2 + static_cast<double>(lines) * line;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">"
      "\n<style>\n{2}</style>\n<rect class=\"back\" width=\"{0}\" height=\"{1}\"/>\n",
      width, height, html::chart_style());
  for (size_t i = 0; i < drawn.size(); ++i) {
    const DrawnLegend names = drawn_legend(*drawn[i]);
    out += fmt::format(
        "<g transform=\"translate({} {})\">\n<text class=\"title\" y=\"16\">{}</text>\n"
        "<g transform=\"translate(0 {})\">{}</g>\n<svg y=\"{}\" width=\"{}\" height=\"{}\"{}</g>\n",
        kGap + static_cast<double>(i % columns) * (kWidth + kGap),
        kGap / 2 + static_cast<double>(i / columns) * line, html::text(drawn[i]->title), kTitle,
        names.text, kTitle + legends, kWidth, kHeight,
        Drawing(*drawn[i]).svg().substr(std::string_view("<svg").size()));
  }
  return out + "</svg>\n";
}

}  // namespace dpt
