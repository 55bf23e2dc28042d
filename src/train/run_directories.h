// Where runs without `out=DIR` lie: BASE/1, BASE/2, ..., with BASE = runs/NAME, and BASE/latest, a
// relative link to the newest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/disk.h"

namespace dpt {

// Makes BASE/N, N = 1 + the highest number there, and returns its path. Of runs that start at the
// same moment each gets its own number. Throws Error{failed}.
std::string make_next_run(const std::string& base, Disk& disk);

// Links BASE/latest to the newest run that has begun, which has a spec.resolved.yaml. Where the
// file system has no links it prints so; newest_run() does without. Threads and processes: any
// number at once; the last one to return leaves the highest number.
void link_latest(const std::string& base);

// The run that a directory stands for: where it holds numbered runs, the one that `latest` links to
// (without that link, the highest number), else the directory itself.
std::string newest_run(const std::string& directory);

// N where `run` is BASE/N, or a link to it.
std::optional<int64_t> run_number(const std::string& base, const std::string& run);

// Whether a run has written into this directory itself: by out=DIR, or by version 0.1.0, which did
// not number runs.
bool holds_run(const std::string& directory);

}  // namespace dpt
