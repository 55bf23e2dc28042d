// What `dptrain bench` says of its rows: a table for people, JSON and CSV for programs, a picture.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/row.h"

namespace dpt {

struct BenchReport {
  std::string name;               // of the spec
  std::string machine;            // CPU, cores or GPUs, versions; one line
  std::string data;               // one line
  std::string device = "1 core";  // what each device has
  int cores = 1;                  // of the machine
  std::vector<RowResult> rows;    // at least one was measured

  std::vector<const RowResult*> measured() const;
  // The measured rows of each batch size and precision.
  std::vector<std::vector<const RowResult*>> by_batch() const;
  // Of a measured row; see report/baseline.h and report/reasons.h.
  const RowResult& baseline(const RowResult& row) const;
  double speedup(const RowResult& row) const;
  double ideal(const RowResult& row) const;
  double efficiency(const RowResult& row) const { return speedup(row) / ideal(row); }
  std::string reason(const RowResult& row) const;
  // What the speed-ups of all rows are relative to: "single with the same batch and precision".
  std::string relative_to() const;
};

std::string bench_table(const BenchReport& report);
std::string bench_json(const BenchReport& report);  // {"rows": [{"mode": "single", ...}]}
std::string bench_csv(const BenchReport& report);   // the same columns; first line: their names

// A bar for each row, of its shares of time. Bars of one batch size and precision have one scale.
std::string bench_svg(const BenchReport& report);

// Lines of the speed-up by the number of devices, beside the ideal one; a plot for each batch size
// and precision.
std::string speedup_svg(const BenchReport& report);

// The lines below a picture: the first has its baseline at y.
struct Footer {
  std::string text;
  int height = 0;  // in pixels
};
Footer bench_footer(const BenchReport& report, int y);

}  // namespace dpt
