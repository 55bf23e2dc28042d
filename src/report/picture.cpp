// Draws a bar for each row, as long as its time per sample, divided by what the workers did. The
// scale is chosen per batch size and precision, where the longest bar has the full length: with one
// scale, the bars of large batches would vanish.
#include <algorithm>

#include <fmt/format.h>

#include "base/count.h"
#include "base/wrap.h"
#include "report/numbers.h"
#include "report/report.h"
#include "report/svg.h"

namespace dpt {
namespace {

constexpr int kWidth = 900, kLabels = 180, kBars = 520, kRow = 30, kHeading = 34, kTop = 96;

struct Part {
  std::string_view name, colour;
  double WorkerSeconds::*what;
};
// Colors that are distinguishable with color blindness and in grayscale.
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
  std::string out = text(kLabels - 10, y + 14,
                         fmt::format("{}, {}", r.row.mode, counted(r.row.devices, "device")),
                         "text-anchor=\"end\"");
  double x = kLabels;
  for (const Part& p : kParts) {
    const double width = r.ms_per_sample * r.share(p.what) * scale;
    out += box(x, y, width, p.colour);
    x += width;
  }
  return out +
         text(x + 8, y + 14,
              fmt::format("{}, {}", time_text(r.ms_per_sample), ratio_text(report.speedup(r))));
}

}  // namespace

Footer bench_footer(const BenchReport& report, int y) {
  constexpr size_t kLine = 140;  // characters that fit on a line
  Footer out;
  for (const std::string& rest :
       {fmt::format("each device has {}; data: {}", report.device, report.data), report.machine})
    for (const std::string& line : wrap_lines(rest, kLine)) {
      out.text += text(20, y + out.height, line, "font-size=\"11\" fill=\"#666666\"");
      out.height += 18;
    }
  return out;
}

std::string bench_svg(const BenchReport& report) {
  const auto groups = report.by_batch();
  std::string out;
  double x = kLabels;
  for (const Part& p : kParts) {
    out += box(x, 60, 18, p.colour) + text(x + 26, 74, p.name);
    x += 145;
  }
  int y = kTop;
  for (const auto& rows : groups) {
    double longest = 0;
    for (const RowResult* r : rows) longest = std::max(longest, r->ms_per_sample);
    out +=
        text(20, y + 18,
             fmt::format("batch {}, {}", rows.front()->row.batch_size, rows.front()->row.precision),
             "font-weight=\"bold\"");
    y += kHeading;
    for (const RowResult* r : rows) {
      out += bar(report, *r, y, kBars / longest);
      y += kRow;
    }
  }
  const std::string scales = groups.size() > 1 ? "; each group of bars has its own scale" : "";
  const Footer footer = bench_footer(report, y + 18);
  return svg::begin(kWidth, y + 14 + footer.height) +
         text(20, 26, report.name + ": time per sample, and speed-up", "font-size=\"16\"") +
         text(20, 46, fmt::format("speed-up relative to {}{}", report.relative_to(), scales),
              "font-size=\"12\" fill=\"#666666\"") +
         out + footer.text + "</svg>\n";
}

}  // namespace dpt
