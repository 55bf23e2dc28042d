// Text on standard output. flush_output() of base/files.h finds whether it could be written.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/stderr.h"

namespace dpt {

// Formats the text, escapes its control bytes as print_stderr does, and writes it: names out of
// files (layers, classes, paths) cannot steer the terminal.
template <class... Args>
void print_stdout(fmt::format_string<Args...> text, Args&&... args) {
  const std::string safe = escape_controls(fmt::format(text, std::forward<Args>(args)...));
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

}  // namespace dpt
