// A plot of values by a setting: lines and points over one tick for each value of the setting.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dpt {

inline constexpr int kPlotWidth = 330, kPlotHeight = 345;  // of a plot with its text

struct PlotSeries {
  std::string name, color;
  std::vector<std::pair<double, double>> points;  // x: index of the tick; sorted by x
};

struct ValuePlot {
  std::string title;
  bool from_zero = false;
  std::vector<PlotSeries> series;  // each has points
};

// The horizontal axis.
struct PlotTicks {
  std::vector<std::string> names;
  std::vector<double> places;  // of each name: 0 to names.size() - 1
};

// Places by the logarithm where all values are powers of two or of ten, such as batch sizes, else
// one after another.
PlotTicks ticks_named(std::vector<std::string> names);

// Elements of a picture (report/svg.h); `left`: where the plot begins. A series is a line if each
// tick has at most one of its points, otherwise only points.
std::string draw_plot(const ValuePlot& plot, const PlotTicks& ticks, int left,
                      const std::string& key);

// Colors of series that are distinguishable with color blindness.
std::string plot_color(size_t index);

}  // namespace dpt
