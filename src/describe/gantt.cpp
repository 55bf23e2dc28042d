#include "describe/gantt.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dpt {
namespace {

constexpr int kColumns = 72;
constexpr int kWidth = 900, kLabels = 90, kBars = 780, kRow = 34, kTop = 56;

bool several_stages(const std::vector<StageOp>& ops) {
  return std::ranges::any_of(ops, [&](const StageOp& op) { return op.stage != ops[0].stage; });
}

}  // namespace

std::string gantt_text(const PipelineSchedule& schedule, const Timing& timing) {
  std::string out;
  for (size_t d = 0; d < schedule.size(); ++d) {
    std::string line(kColumns, '.');
    for (size_t i = 0; i < schedule[d].size(); ++i) {
      const StageOp& op = schedule[d][i];
      const auto column = [&](double t) {
        return std::min<size_t>(kColumns,
                                static_cast<size_t>(std::lround(t / timing.total * kColumns)));
      };
      const size_t begin = column(timing.spans[d][i].begin), end = column(timing.spans[d][i].end);
      if (begin >= end) continue;  // too short to be seen
      std::string block(end - begin, op.backward ? '#' : '=');
      const std::string number = std::to_string(op.chunk);
      if (number.size() <= block.size()) block.replace(0, number.size(), number);
      line.replace(begin, end - begin, block);
    }
    out += fmt::format("  device {:<3} |{}|\n", d, line);
  }
  return out;
}

std::string gantt_svg(const PipelineSchedule& schedule, const Timing& timing) {
  const int height = kTop + static_cast<int>(schedule.size()) * kRow + 20;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
      "<text x=\"14\" y=\"22\" font-size=\"15\">A step of the pipeline, bubble {2:.1f} %</text>\n"
      "<rect x=\"14\" y=\"32\" width=\"12\" height=\"12\" fill=\"#4477aa\"/>"
      "<text x=\"32\" y=\"42\">forward</text>\n"
      "<rect x=\"100\" y=\"32\" width=\"12\" height=\"12\" fill=\"#ee8866\"/>"
      "<text x=\"118\" y=\"42\">backward; the number is the chunk's</text>\n",
      kWidth, height, 100 * timing.bubble);
  for (size_t d = 0; d < schedule.size(); ++d) {
    const int y = kTop + static_cast<int>(d) * kRow;
    out += fmt::format("<text x=\"14\" y=\"{}\">device {}</text>\n", y + 18, d);
    const bool several = several_stages(schedule[d]);
    for (size_t i = 0; i < schedule[d].size(); ++i) {
      const StageOp& op = schedule[d][i];
      const double x = kLabels + timing.spans[d][i].begin / timing.total * kBars;
      const double width =
          (timing.spans[d][i].end - timing.spans[d][i].begin) / timing.total * kBars;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"26\" fill=\"{}\" "
          "stroke=\"#ffffff\"><title>stage {}, chunk {}, {}</title></rect>\n",
          x, y, width, op.backward ? "#ee8866" : "#4477aa", op.stage, op.chunk,
          op.backward ? "backward" : "forward");
      if (width > 14)
        out += fmt::format(
            "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\">{}{}</text>\n",
            x + width / 2, y + 18, op.backward ? "#222222" : "#ffffff", op.chunk,
            several ? fmt::format(" s{}", op.stage) : "");
    }
  }
  return out + "</svg>\n";
}

}  // namespace dpt
