// A chart made of characters, for terminals.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/run_curves.h"

namespace dpt {

struct TextCurve {
  std::string name;
  const std::vector<CurvePoint>* points = nullptr;
  bool marks = false;  // an 'o' at each point; else a line
};

struct TextChartSize {
  int columns = 80, rows = 12;  // of the whole chart with its axes and legend
  bool ascii = false;           // else lines are Braille characters, with eight dots each
};

// Lines of at most `columns` characters: the legend, the curves with the vertical axis at the left,
// the horizontal axis. x_name and x_scale: the name of the horizontal axis, and how many steps its
// unit has. Empty if no curve has a finite point, or the size is too small (24 columns, 6 rows).
std::vector<std::string> text_chart(std::span<const TextCurve> curves, const TextChartSize& size,
                                    const std::string& x_name, double x_scale);

// Number of characters of a text without control codes.
size_t characters_of(std::string_view utf8);

}  // namespace dpt
