// Results on standard output. A write that fails does not end a run, which would lose what was
// trained: it is remembered, and flush_output() reports it at the end.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/stderr.h"

namespace dpt {

// Writes the bytes at once, past the buffer of stdio. After a failure nothing more is written.
// Where the reader of a pipe has gone, SIGPIPE is raised as for any program. Thread: any.
void write_stdout(std::string_view bytes) noexcept;

// Formats the text, escapes its control bytes as print_stderr does, and writes it: names out of
// files (layers, classes, paths) cannot steer the terminal.
template <class... Args>
void print_stdout(fmt::format_string<Args...> text, Args&&... args) {
  write_stdout(escape_controls(fmt::format(text, std::forward<Args>(args)...)));
}

// What was printed so far, by stdio too, leaves the process. Throws Error{failed} where any of it
// could not be written; where a pipe has no reader any more, ends the process by SIGPIPE.
void flush_output();

}  // namespace dpt
