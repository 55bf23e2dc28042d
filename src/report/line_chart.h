// A chart of curves as an HTML figure with an SVG picture, whose colors the page's style defines.
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
};

struct LineChart {
  std::string title, x_name;
  std::vector<ChartCurve> curves;
  bool from_zero = false;  // the vertical axis begins at 0
  double y_factor = 1;     // 100 for shares in %
};

// Empty if no curve has a finite point. Curves of many points are drawn by the smallest and the
// largest in each column of the picture.
std::string line_chart(const LineChart& chart);

}  // namespace dpt
