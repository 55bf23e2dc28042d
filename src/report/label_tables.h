// The metrics of each label as tables of HTML.
#pragma once

#include <string>

#include "report/run_curves.h"

namespace dpt {

// A table for each evaluated set: a row for each label, a column for each metric, with the last
// values. "": no metrics of labels were recorded.
std::string label_tables(const RunCurves& curves);

}  // namespace dpt
