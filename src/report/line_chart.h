// Charts of curves: as HTML figures with SVG pictures, whose colors the page's style defines, or as
// a picture of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/run_curves.h"

namespace dpt {

struct ChartCurve {
  std::string name;  // in the legend
  const std::vector<CurvePoint>* points = nullptr;
  double x_scale = 1;  // steps per unit of the horizontal axis
  size_t color = 0;    // html::color_class()
  bool dashed = false;
  bool thin = false;  // of many noisy points, behind the others
  bool dots = false;  // only dots, no line
};

struct LineChart {
  std::string title, x_name;
  std::vector<ChartCurve> curves;
  bool from_zero = false;  // the vertical axis begins at 0
  double y_factor = 1;     // 100 for shares in %
  // Names on the horizontal axis and their places there, ascending; empty: round numbers.
  std::vector<std::string> tick_names{};
  std::vector<double> tick_places{};
};

// Empty if no curve has a finite point. Curves of many points are drawn by the smallest and the
// largest in each column of the picture.
std::string line_chart(const LineChart& chart);

// The charts side by side, as many as the screen has room for. Empty if no chart has a finite
// point.
std::string line_charts(const std::vector<LineChart>& charts);

// A whole SVG picture of the charts with their titles and legends, for light and dark screens.
// Empty if no chart has a finite point.
std::string charts_svg(const std::vector<LineChart>& charts);

}  // namespace dpt
