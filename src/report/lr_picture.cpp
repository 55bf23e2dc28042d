// Draws the learning rate range test, as characters and as SVG. The vertical axis ends a bit above
// the loss at the beginning: where it diverges, numbers are too large for the fall to be seen.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/lr_range.h"
#include "report/svg.h"

namespace dpt {
namespace {

struct Axes {
  double left, right;  // logarithms of learning rates
  double low, high;    // losses

  explicit Axes(const LrCurve& c) : left(std::log10(c.lr.front())), right(std::log10(c.lr.back())) {
    const auto [least, most] = std::ranges::minmax_element(c.smooth);
    low = *least;
    high = std::min(*most, *least + 1.3 * std::max(c.smooth.front() - *least, 1e-9));
    if (!(high > low)) high = low + 1;
    if (!(right > left)) right = left + 1;
  }
  double x(double lr) const { return (std::log10(lr) - left) / (right - left); }
  double y(double loss) const { return std::clamp((loss - low) / (high - low), 0.0, 1.0); }
};

// Powers of ten on the axis.
std::vector<double> ticks(const Axes& a) {
  std::vector<double> out;
  for (double power = std::ceil(a.left - 1e-9); power <= a.right + 1e-9; ++power)
    out.push_back(std::pow(10, power));
  return out;
}

size_t cell(double share, size_t cells) {
  return std::min(cells - 1, static_cast<size_t>(share * static_cast<double>(cells)));
}

}  // namespace

std::string lr_chart(const LrCurve& curve, const LrSuggestion& suggestion, size_t width) {
  constexpr size_t kHeight = 12, kLabel = 10;
  const size_t columns = std::max<size_t>(width, 30) - kLabel - 1;
  const Axes axes(curve);
  std::vector<std::string> rows(kHeight, std::string(columns, ' '));
  const size_t mark = cell(axes.x(suggestion.valley), columns);
  for (std::string& row : rows) row[mark] = '|';
  for (size_t i = 0; i < curve.size(); ++i)
    rows[kHeight - 1 - cell(axes.y(curve.smooth[i]), kHeight)][cell(axes.x(curve.lr[i]), columns)] =
        '*';
  std::string out;
  for (size_t r = 0; r < kHeight; ++r) {
    const bool first = r == 0, last = r + 1 == kHeight;
    const std::string label = first  ? fmt::format("{:.4g}", axes.high)
                              : last ? fmt::format("{:.4g}", axes.low)
                                     : "";
    std::string& row = rows[r];
    row.erase(row.find_last_not_of(' ') + 1);
    out += fmt::format("{:>{}} {}\n", label, kLabel, row);
  }
  std::string line(columns, ' ');
  for (const double tick : ticks(axes)) {
    const std::string text = fmt::format("{:.0e}", tick);
    const size_t at = cell(axes.x(tick), columns);
    const bool free = at + text.size() <= columns && (at == 0 || line[at - 1] == ' ') &&
                      line.find_first_not_of(' ', at) == line.npos;
    if (free) line.replace(at, text.size(), text);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return out + fmt::format("{:>{}} {}\n", "loss / lr", kLabel, line);
}

std::string lr_svg(const LrCurve& curve, const LrSuggestion& suggestion, const std::string& title) {
  constexpr int kWidth = 720, kHeight = 400;
  constexpr double kLeft = 70, kRight = 690, kTop = 50, kBottom = 340;
  const Axes axes(curve);
  const auto x = [&](double lr) { return kLeft + axes.x(lr) * (kRight - kLeft); };
  const auto y = [&](double loss) { return kBottom - axes.y(loss) * (kBottom - kTop); };
  constexpr std::string_view kGrey = "#dddddd", kMiddle = "text-anchor=\"middle\"";
  std::string out = svg::begin(kWidth, kHeight);
  out += svg::text(kLeft, 26, title, "font-weight=\"bold\"");
  for (const double tick : ticks(axes)) {
    out += svg::line(x(tick), kTop, x(tick), kBottom, kGrey);
    out += svg::text(x(tick), kBottom + 18, fmt::format("{:.0e}", tick), kMiddle);
  }
  for (int i = 0; i <= 4; ++i) {
    const double loss = axes.low + i * (axes.high - axes.low) / 4;
    out += svg::line(kLeft, y(loss), kRight, y(loss), kGrey);
    out += svg::text(kLeft - 8, y(loss) + 4, fmt::format("{:.4g}", loss), "text-anchor=\"end\"");
  }
  out += svg::text((kLeft + kRight) / 2, kBottom + 44, "learning rate", kMiddle);
  out += svg::text(kLeft - 8, kTop - 12, "loss", "text-anchor=\"end\"");
  const auto curve_of = [&](const std::vector<double>& losses, std::string_view style) {
    std::string points;
    for (size_t i = 0; i < curve.size(); ++i)
      points += fmt::format("{}{:.1f},{:.1f}", i > 0 ? " " : "", x(curve.lr[i]), y(losses[i]));
    return fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", points, style);
  };
  out += curve_of(curve.loss, "stroke=\"#bbccdd\"");
  out += curve_of(curve.smooth, "stroke=\"#4477aa\" stroke-width=\"2.5\"");
  out += svg::line(x(suggestion.valley), kTop, x(suggestion.valley), kBottom, "#cc5522",
                   "stroke-width=\"1.5\"");
  out += svg::text(x(suggestion.valley) + 6, kTop + 14, "valley: " + lr_text(suggestion.valley),
                   "fill=\"#cc5522\"");
  return out + "</svg>\n";
}

}  // namespace dpt
