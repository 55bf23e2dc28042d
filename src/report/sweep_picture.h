// Pictures of a sweep: the metric by each key, a heat map for two keys, speed-up by devices.
#pragma once

#include <string>
#include <vector>

#include "report/sweep_run.h"

namespace dpt {

// Each a section of a page (report/html.h). Settings without results are left out, and so are
// sections that would show none. machine: one line; cores: of the machine.
std::vector<std::string> sweep_pictures(const Sweep& sweep, const std::string& machine, int cores);

// One HTML page without links to other files: the tables, the pictures, and `command`, which made
// the sweep.
std::string sweep_html(const Sweep& sweep, const std::string& command, const std::string& machine,
                       int cores);

}  // namespace dpt
