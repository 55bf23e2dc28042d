// The output of `dptrain bench`: a table for people, JSON and CSV for programs, and pictures.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/row.h"

namespace dpt {

struct BenchReport {
  std::string name;               // of the spec
  std::string machine;            // CPU, cores or GPUs, versions; one line
  std::string data;               // one line
  std::string device = "1 core";  // what each device consists of
  int cores = 1;                  // of the machine
  std::vector<RowResult> rows;    // at least one of them was measured

  std::vector<const RowResult*> measured() const;
  // The measured rows, grouped by batch size and precision.
  std::vector<std::vector<const RowResult*>> by_batch() const;
  // For measured rows only; see report/baseline.h and report/reasons.h.
  const RowResult& baseline(const RowResult& row) const;
  double speedup(const RowResult& row) const;
  double ideal(const RowResult& row) const;
  double efficiency(const RowResult& row) const { return speedup(row) / ideal(row); }
  std::string reason(const RowResult& row) const;
  // The baseline of the speed-ups, as in "single with the same batch and precision".
  std::string relative_to() const;
};

// Lines of at most `width` characters, for which columns are left out as by fit_columns(); 0: any.
std::string bench_table(const BenchReport& report, size_t width);
std::string bench_json(const BenchReport& report);  // {"rows": [{"mode": "single", ...}]}
std::string bench_csv(const BenchReport& report);   // the same columns; names in the first line

// A bar for each row, divided into shares of time. The scale is per batch size and precision.
std::string bench_svg(const BenchReport& report);

// A page of the contents of a bench.json and the picture beside it. Throws Error{data} if the text
// is not that of a bench.json.
std::string bench_page(std::string_view json, const std::string& svg);

// Speed-up by number of devices, beside the ideal line; a plot for each batch size and precision.
std::string speedup_svg(const BenchReport& report);

// The lines of text below a picture; the first has its baseline at y.
struct Footer {
  std::string text;
  int height = 0;  // in pixels
};
Footer bench_footer(const BenchReport& report, int y);

}  // namespace dpt
