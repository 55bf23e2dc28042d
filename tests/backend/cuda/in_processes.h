// Pieces of a test in a process each, so that one that crashes, hangs or breaks its GPU leaves the
// others alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dpt {

struct Piece {
  std::string name;
  std::vector<std::string> lines;  // that it wrote
  std::string problem;             // empty: it ended well
};

// Runs body(name, write) for each name in a forked process, `jobs` at a time, and gives each piece
// to `ended` as it ends. What body throws, a signal, an exit code and `seconds` without an end are
// problems. REQUIRES: this process has one thread and has not started CUDA.
using WriteLine = std::function<void(const std::string&)>;
void in_processes(const std::vector<std::string>& names, int jobs, int seconds,
                  const std::function<void(const std::string& name, const WriteLine&)>& body,
                  const std::function<void(const Piece&)>& ended);

}  // namespace dpt
