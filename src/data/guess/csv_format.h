// How a text table is written: its delimiter and its decimal mark.
#pragma once

#include <string>

#include "data/readers/csv.h"

namespace dpt {

// The format by the first lines of the file; `header` is the query's, and `decimal`, unless 0.
// Throws Error{data} that says
// why it is no table.
CsvFormat guess_csv_format(const std::string& path, CsvFormat::HeaderLine header, char decimal);

}  // namespace dpt
