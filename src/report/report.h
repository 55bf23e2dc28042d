// What `dptrain bench` says of its rows: a table for people, JSON and CSV for programs, a picture.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/row.h"

namespace dpt {

struct BenchReport {
  std::string name;               // of the spec
  std::string machine;            // CPU, cores or GPUs, versions; one line
  std::string data;               // one line
  std::string device = "1 core";  // what one is
  std::vector<RowResult> rows;
  std::vector<std::string> sentences;          // why rows are slower than single
  double speedup(const RowResult& row) const;  // over the first row that was not refused
};

std::string bench_table(const BenchReport& report);
std::string bench_json(const BenchReport& report);  // {"rows": [{"mode": "single", ...}]}
std::string bench_csv(const BenchReport& report);   // the same columns; first line: their names
std::string bench_svg(const BenchReport& report);   // a bar for each row, of its three shares

}  // namespace dpt
