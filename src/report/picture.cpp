// A bar for each row, as long as its ms/sample, cut into what its workers did.
#include <algorithm>

#include <fmt/format.h>

#include "bench/report.h"
#include "bench/svg.h"

namespace dpt {
namespace {

constexpr int kWidth = 900, kLabels = 270, kBars = 430, kRow = 30, kTop = 84;

struct Part {
  std::string_view name, colour;
  double WorkerSeconds::*what;
};
// Told apart by those who see no red or no green as well, and in grey.
constexpr Part kParts[] = {{"compute", "#4477aa", &WorkerSeconds::compute},
                           {"communication", "#ee8866", &WorkerSeconds::communication},
                           {"waiting", "#cccccc", &WorkerSeconds::waiting}};

using svg::text;

std::string box(double x, double y, double width, std::string_view colour) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\" fill=\"{}\"/>\n", x, y, width,
      colour);
}

std::string bar(const BenchReport& report, const RowResult& r, double y, double scale) {
  std::string out = text(kLabels - 10, y + 14, name_of(r.row), "text-anchor=\"end\"");
  double x = kLabels;
  for (const Part& p : kParts) {
    const double width = r.ms_per_sample * r.share(p.what) * scale;
    out += box(x, y, width, p.colour);
    x += width;
  }
  return out +
         text(x + 8, y + 14, fmt::format("{:.3g} ms, {:.2f}x", r.ms_per_sample, report.speedup(r)));
}

}  // namespace

std::string bench_svg(const BenchReport& report) {
  double longest = 0;
  int rows = 0;
  for (const RowResult& r : report.rows)
    if (r.refused.empty()) longest = std::max(longest, r.ms_per_sample), ++rows;
  const int bottom = kTop + rows * kRow;
  std::string out = svg::begin(kWidth, bottom + 50);
  out += text(20, 28, report.name + ": milliseconds per sample, and speed-up over the first row",
              "font-size=\"16\"");
  double x = kLabels;
  for (const Part& p : kParts) {
    out += box(x, 46, 18, p.colour) + text(x + 26, 60, p.name);
    x += 145;
  }
  int y = kTop;
  for (const RowResult& r : report.rows) {
    if (!r.refused.empty()) continue;
    out += bar(report, r, y, kBars / longest);
    y += kRow;
  }
  out += text(20, bottom + 18, fmt::format("a device is {}; data: {}", report.device, report.data),
              "font-size=\"11\" fill=\"#666666\"");
  out += text(20, bottom + 36, report.machine, "font-size=\"11\" fill=\"#666666\"");
  return out + "</svg>\n";
}

}  // namespace dpt
