// report.html: one run, or several side by side, as a page.
#pragma once

#include <span>
#include <string>

#include "report/reported_run.h"

namespace dpt {

// A page about one run: results, curves, confusion matrix, time, plan, spec and environment. Parts
// whose files are missing are left out.
std::string run_report(const ReportedRun& run);

// A page about several runs: a table of results, a chart per metric, the keys of the specs that
// differ, and the hashes of the weights.
std::string runs_report(std::span<const ReportedRun> runs);

// A picture of the losses and metrics of these pages, in SVG. Empty: there are none.
std::string curves_svg(const ReportedRun& run);
std::string curves_svg(std::span<const ReportedRun> runs);

// Lines that say which runs ended in the same bits, by the hashes of their model.safetensors.
std::string weights_text(std::span<const ReportedRun> runs);

}  // namespace dpt
