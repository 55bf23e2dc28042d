// Draws speed-up by number of devices: a line for each mode beside the ideal line, in a plot for
// each batch size and precision. Both axes are logarithmic, which makes the ideal a straight line.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/count.h"
#include "report/baseline.h"
#include "report/numbers.h"
#include "report/report.h"
#include "report/svg.h"

namespace dpt {
namespace {

constexpr int kWidth = 900, kColumns = 3, kFirstPlot = 84, kPlotHeight = 350;
constexpr int kLeft = 56, kRight = 84, kTop = 36, kBottom = 52;  // around the axes of a plot
constexpr const char* kGrey = "fill=\"#666666\" font-size=\"11\"";
constexpr std::string_view kIdealColor = "#777777", kDashes = "stroke-dasharray=\"6 4\"";

// Colors that are distinguishable with color blindness; each mode also has its own marker.
struct Look {
  std::string_view color;
  enum { circle, square, triangle, diamond } marker;
};
Look look_of(std::string_view mode) {
  if (mode == "single") return {"#222222", Look::circle};
  if (mode == "dp") return {"#4477aa", Look::square};
  if (mode == "ddp") return {"#cc5522", Look::triangle};
  return {"#228833", Look::diamond};
}

std::string marker(double x, double y, Look look) {
  if (look.marker == Look::circle)
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"/>\n", x, y,
                       look.color);
  using Corners = std::vector<std::pair<double, double>>;
  const Corners corners = look.marker == Look::square ? Corners{{-4, -4}, {4, -4}, {4, 4}, {-4, 4}}
                          : look.marker == Look::triangle
                              ? Corners{{0, -6}, {6, 4}, {-6, 4}}
                              : Corners{{0, -6}, {6, 0}, {0, 6}, {-6, 0}};
  std::string points;
  for (const auto& [dx, dy] : corners)
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x + dx, y + dy);
  return fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", points, look.color);
}

using Rows = std::vector<const RowResult*>;

// Distinct modes, in the order of the rows.
std::vector<std::string> modes_of(const Rows& rows) {
  std::vector<std::string> out;
  for (const RowResult* r : rows)
    if (std::ranges::find(out, r->row.mode) == out.end()) out.push_back(r->row.mode);
  return out;
}

class Plot {
 public:
  // The upper left corner of the plot and its width, margins included.
  Plot(const BenchReport& report, const Rows& rows, double left, double top, double width)
      : report_(report),
        rows_(rows),
        left_(left + kLeft),
        right_(left + width - kRight),
        top_(top + kTop),
        bottom_(top + kPlotHeight - kBottom) {
    for (const RowResult* r : rows) {
      devices_.insert(r->row.devices);
      const double ideal = report.ideal(*r);
      add_ideal(static_cast<double>(r->row.devices), ideal);
      const Processors p = processors_of(*r, report.cores);
      if (r->facts.workers > p.count)  // the line bends where every processor has a worker
        add_ideal(static_cast<double>(r->row.devices * p.count) / r->facts.workers, ideal);
      low_ = std::min(low_, report.speedup(*r));
      high_ = std::max({high_, report.speedup(*r), ideal});
    }
    low_ /= 1.12;
    high_ *= 1.12;
  }

  std::string text() const {
    const BenchRow& first = rows_.front()->row;
    std::string out =
        svg::text(left_, top_ - 12, fmt::format("batch {}, {}", first.batch_size, first.precision),
                  "font-weight=\"bold\"");
    out += axes() + ideal_line();
    for (const std::string& mode : modes_of(rows_)) out += curve(mode);
    return out + labels();
  }

 private:
  // Adds a point of the ideal line. Points left of the first measured one are not drawn.
  void add_ideal(double devices, double speedup) {
    double& at = ideal_[devices];
    at = std::max(at, speedup);
  }

  double x(double devices) const {
    const auto first = static_cast<double>(*devices_.begin());
    const double all = std::max(1.0, std::log2(static_cast<double>(*devices_.rbegin()) / first));
    return left_ + 14 + std::log2(devices / first) / all * (right_ - left_ - 28);
  }
  double y(double speedup) const {
    const double at = std::clamp(speedup, low_, high_);
    return bottom_ - std::log2(at / low_) / std::log2(high_ / low_) * (bottom_ - top_);
  }

  std::string axes() const {
    std::string out;
    const bool wide = high_ / low_ >= 8;
    const auto last = static_cast<int>(std::floor(std::log2(high_)));
    for (int power = static_cast<int>(std::floor(std::log2(low_))); power <= last; ++power)
      for (const double tick : {std::exp2(power), 1.5 * std::exp2(power)}) {
        const bool between = tick != std::exp2(power);
        if (tick < low_ || tick > high_ || (between && wide)) continue;
        out += svg::line(left_, y(tick), right_, y(tick), tick == 1 ? "#999999" : "#dddddd");
        out += svg::text(left_ - 8, y(tick) + 4, fmt::format("{:.4g}x", tick),
                         fmt::format("text-anchor=\"end\" {}", kGrey));
      }
    out += svg::line(left_, bottom_, right_, bottom_, "#222222");
    double free_from = 0;
    for (const int64_t n : devices_) {
      const double at = x(static_cast<double>(n));
      if (at < free_from) continue;
      out += svg::text(at, bottom_ + 18, fmt::format("{}", n),
                       fmt::format("text-anchor=\"middle\" {}", kGrey));
      free_from = at + 28;
    }
    return out + svg::text((left_ + right_) / 2, bottom_ + 38, "devices",
                           "text-anchor=\"middle\" font-size=\"12\"");
  }

  std::string ideal_line() const {
    std::string points;
    for (const auto& [devices, speedup] : ideal_)
      if (devices >= static_cast<double>(*devices_.begin()))
        points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x(devices), y(speedup));
    return fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" {}/>\n", points,
        kIdealColor, kDashes);
  }

  Rows of(std::string_view mode) const {
    Rows out;
    for (const RowResult* r : rows_)
      if (r->row.mode == mode) out.push_back(r);
    std::ranges::stable_sort(out, std::ranges::less{},
                             [](const RowResult* r) { return r->row.devices; });
    return out;
  }

  // A thin vertical line through each point spans the quartiles of the rounds.
  std::string curve(const std::string& mode) const {
    const Look look = look_of(mode);
    std::string points, parts;
    for (const RowResult* r : of(mode)) {
      const double at = x(static_cast<double>(r->row.devices)), speedup = report_.speedup(*r);
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", at, y(speedup));
      parts += svg::line(at, y(speedup * r->ms_per_sample / r->upper), at,
                         y(speedup * r->ms_per_sample / r->lower), look.color);
      parts += marker(at, y(speedup), look);
    }
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       points, look.color) +
           parts;
  }

  // Labels at the right ends of the lines, moved apart where lines are close.
  std::string labels() const {
    struct Label {
      double y;
      std::string text;
      std::string_view color;
    };
    std::vector<Label> all = {{.y = y(ideal_.rbegin()->second),
                               .text = fmt::format("ideal {:.3g}x", ideal_.rbegin()->second),
                               .color = kIdealColor}};
    for (const std::string& mode : modes_of(rows_))
      if (const RowResult& last = *of(mode).back(); last.row.devices == *devices_.rbegin())
        all.push_back({.y = y(report_.speedup(last)),
                       .text = fmt::format("{} {}", mode, ratio_text(report_.speedup(last))),
                       .color = look_of(mode).color});
    std::ranges::stable_sort(all, std::ranges::less{}, &Label::y);
    constexpr double kLine = 14;
    double free_from = top_;
    for (Label& l : all) free_from = (l.y = std::max(l.y, free_from)) + kLine;
    double free_to = bottom_;
    for (size_t i = all.size(); i-- > 0;)
      free_to = (all[i].y = std::min(all[i].y, free_to)) - kLine;
    std::string out;
    for (const Label& l : all)
      out += svg::text(right_ + 2, l.y + 4, l.text,
                       fmt::format("font-size=\"11\" fill=\"{}\"", l.color));
    return out;
  }

  const BenchReport& report_;
  const Rows& rows_;
  double left_, right_, top_, bottom_;
  std::set<int64_t> devices_;
  std::map<double, double> ideal_;  // by devices
  double low_ = 1, high_ = 1;
};

// The reason for a bend in the ideal line, if a row has more workers than there are processors.
std::string bend(const BenchReport& report) {
  for (const RowResult* r : report.measured())
    if (const Processors p = processors_of(*r, report.cores); r->facts.workers > p.count)
      return fmt::format(" until the {} are in use", counted(p.count, p.name));
  return "";
}

std::string legend(const BenchReport& report, double y) {
  std::string out;
  double x = 20;
  for (const std::string& mode : modes_of(report.measured())) {
    const Look look = look_of(mode);
    out += svg::line(x, y - 4, x + 28, y - 4, look.color, "stroke-width=\"2\"");
    out += marker(x + 14, y - 4, look) + svg::text(x + 36, y, mode);
    x += 60 + 8 * static_cast<double>(mode.size());
  }
  out += svg::line(x, y - 4, x + 28, y - 4, kIdealColor,
                   fmt::format("stroke-width=\"1.5\" {}", kDashes));
  return out + svg::text(x + 36, y, "ideal: N times for N devices" + bend(report));
}

}  // namespace

std::string speedup_svg(const BenchReport& report) {
  const auto groups = report.by_batch();
  const int plots = static_cast<int>(groups.size());
  const int columns = plots == 4 ? 2 : std::min(kColumns, plots);
  const double width = static_cast<double>(kWidth) / columns;
  const int lines = (plots + columns - 1) / columns;
  const int bottom = kFirstPlot + lines * kPlotHeight;
  const Footer footer = bench_footer(report, bottom + 18);
  std::string out = svg::begin(kWidth, bottom + 14 + footer.height);
  out += svg::text(20, 26, report.name + ": speed-up by number of devices", "font-size=\"16\"");
  out += svg::text(
      20, 46,
      fmt::format("relative to {}; vertical lines: variation between rounds", report.relative_to()),
      "font-size=\"12\" fill=\"#666666\"");
  out += legend(report, 70);
  for (size_t i = 0; i < groups.size(); ++i)
    out += Plot(report, groups[i], width * static_cast<double>(i % static_cast<size_t>(columns)),
                kFirstPlot + kPlotHeight * static_cast<double>(i / static_cast<size_t>(columns)),
                width)
               .text();
  return out + footer.text + "</svg>\n";
}

}  // namespace dpt
