// The directories of runs without `out=DIR`: BASE/1, BASE/2, ... with BASE = runs/NAME, and
// BASE/latest, a relative link to the newest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/disk.h"

namespace dpt {

// Creates BASE/N with N = 1 + the highest number there, and returns its path. Runs that start at
// the same moment get different numbers. Throws Error{failed}.
std::string make_next_run(const std::string& base, Disk& disk);

// Links BASE/latest to the newest run that has begun, that is, has a spec.resolved.yaml. On file
// systems without links, prints a warning; newest_run() works without the link. Threads and
// processes: any number at once; the last call to return leaves the highest number.
void link_latest(const std::string& base);

// The run that a directory stands for: the run that `latest` links to, or else the one with the
// highest number, or else the directory itself.
std::string newest_run(const std::string& directory);

// N if `run` is BASE/N, or a link to it.
std::optional<int64_t> run_number(const std::string& base, const std::string& run);

// Whether a run has written into this directory itself: with out=DIR, or by version 0.1.0, which
// did not number runs.
bool holds_run(const std::string& directory);

}  // namespace dpt
