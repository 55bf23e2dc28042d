#include "report/text_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace dpt {
namespace {

constexpr int kDotsWide = 2, kDotsHigh = 4;  // of a Braille character
constexpr int kLabel = 9;                    // characters left of the vertical axis

struct Range {
  double low = 0, high = 0;
  bool any = false;
  void add(double x) {
    low = any ? std::min(low, x) : x;
    high = any ? std::max(high, x) : x;
    any = true;
  }
  // The part of the range that holds x; parts are numbered 0 to n - 1.
  int part(double x, int n) const {
    if (high <= low) return n / 2;
    return std::clamp(static_cast<int>((x - low) / (high - low) * n), 0, n - 1);
  }
};

// U+2800 with the dots of the bits: 1 2 4 64 down the left side, 8 16 32 128 down the right one.
std::string braille(uint8_t dots) {
  return {static_cast<char>(0xe2), static_cast<char>(0xa0 | dots >> 6),
          static_cast<char>(0x80 | (dots & 0x3f))};
}

uint8_t dot(int x, int y) {
  constexpr std::array<std::array<uint8_t, kDotsHigh>, kDotsWide> kBits = {
      {{1, 2, 4, 64}, {8, 16, 32, 128}}};
  return kBits[static_cast<size_t>(x)][static_cast<size_t>(y)];
}

class Canvas {
 public:
  Canvas(int columns, int rows, bool ascii)
      : columns_(columns), rows_(rows), ascii_(ascii), dots_(cells()), marks_(cells()) {}

  int width() const { return columns_ * kDotsWide; }
  int height() const { return rows_ * kDotsHigh; }

  // (0, 0) is at the lower left.
  void set(int x, int y) {
    const int from_top = height() - 1 - y;
    dots_[cell(x / kDotsWide, from_top / kDotsHigh)] |= dot(x % kDotsWide, from_top % kDotsHigh);
  }
  void mark(int x, int y) { marks_[cell(x / kDotsWide, (height() - 1 - y) / kDotsHigh)] = true; }
  void line(int x1, int y1, int x2, int y2) {
    const int steps = std::max({1, std::abs(x2 - x1), std::abs(y2 - y1)});
    for (int i = 0; i <= steps; ++i)
      set(x1 + static_cast<int>(std::lround(static_cast<double>(x2 - x1) * i / steps)),
          y1 + static_cast<int>(std::lround(static_cast<double>(y2 - y1) * i / steps)));
  }

  std::string row(int r) const {
    std::string out;
    for (int c = 0; c < columns_; ++c) {
      const size_t at = cell(c, r);
      if (marks_[at])
        out += 'o';
      else if (dots_[at] == 0)
        out += ' ';
      else
        out += ascii_ ? "*" : braille(dots_[at]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  }

 private:
  size_t cells() const { return static_cast<size_t>(columns_) * static_cast<size_t>(rows_); }
  size_t cell(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }

  int columns_, rows_;
  bool ascii_;
  std::vector<uint8_t> dots_;
  std::vector<bool> marks_;
};

void draw(Canvas& canvas, const TextCurve& curve, const Range& x, const Range& y) {
  int x_before = -1, y_before = -1;
  for (const CurvePoint& p : *curve.points) {
    if (!std::isfinite(p.value)) {
      x_before = -1;
      continue;
    }
    const int px = x.part(p.step, canvas.width()), py = y.part(p.value, canvas.height());
    if (curve.marks)
      canvas.mark(px, py);
    else if (x_before >= 0)
      canvas.line(x_before, y_before, px, py);
    else
      canvas.set(px, py);
    x_before = px;
    y_before = py;
  }
}

std::string label(double value) {
  std::string out = fmt::format("{:.4g}", value);
  if (out.size() > kLabel - 1) out = fmt::format("{:.2g}", value);
  return fmt::format("{:>{}}", out, kLabel - 1);
}

std::string legend(std::span<const TextCurve> curves, const TextChartSize& size) {
  std::string out(kLabel + 1, ' ');
  for (const TextCurve& c : curves) {
    if (c.points->empty()) continue;
    const std::string part = fmt::format("{} {}  ",
                                         c.marks      ? "o"
                                         : size.ascii ? "*"
                                                      : braille(dot(0, 2) | dot(1, 2)),
                                         c.name);
    if (characters_of(out) + characters_of(part) > static_cast<size_t>(size.columns)) break;
    out += part;
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

std::string x_axis(const Range& x, double scale, const std::string& name, int width) {
  const std::string low = fmt::format("{:.4g}", x.low / scale);
  const std::string high = fmt::format("{} {:.4g}", name, x.high / scale);
  const int space = width - static_cast<int>(low.size() + high.size());
  return std::string(kLabel + 1, ' ') +
         (space < 1 ? high : low + std::string(static_cast<size_t>(space), ' ') + high);
}

}  // namespace

size_t characters_of(std::string_view utf8) {
  return static_cast<size_t>(
      std::ranges::count_if(utf8, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> text_chart(std::span<const TextCurve> curves, const TextChartSize& size,
                                    const std::string& x_name, double x_scale) {
  constexpr int kLeastColumns = 24, kLeastRows = 6;
  Range x, y;
  for (const TextCurve& c : curves)
    for (const CurvePoint& p : *c.points)
      if (std::isfinite(p.value)) {
        x.add(p.step);
        y.add(p.value);
      }
  if (!y.any || size.columns < kLeastColumns || size.rows < kLeastRows) return {};
  const int columns = size.columns - kLabel - 1, rows = size.rows - 2;
  Canvas canvas(columns, rows, size.ascii);
  for (const bool marks : {false, true})
    for (const TextCurve& c : curves)
      if (c.marks == marks) draw(canvas, c, x, y);
  std::vector<std::string> out = {legend(curves, size)};
  for (int r = 0; r < rows; ++r) {
    const bool labeled = r == 0 || r == rows - 1 || r == rows / 2;
    const double part = 1 - static_cast<double>(r) / (rows - 1);
    out.push_back(
        (labeled ? label(y.low + part * (y.high - y.low)) : std::string(kLabel - 1, ' ')) +
        (size.ascii ? " |" : " \u2502") + canvas.row(r));
  }
  out.push_back(x_axis(x, x_scale, x_name, columns));
  return out;
}

}  // namespace dpt
