// Results on standard output. A failed write does not end a run, which would lose what was trained:
// flush_output() reports it at the end.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/stderr.h"

namespace dpt {

// Writes the bytes immediately, bypassing stdio's buffer. After a failure nothing more is written.
// If the reader of a pipe has gone, SIGPIPE is raised as usual. Thread: any.
void write_stdout(std::string_view bytes) noexcept;

// From now on, what this process and those that it forks print on standard output goes to standard
// error, if `on`: for commands whose result is something else than what is printed on the way.
void print_results_on_stderr(bool on) noexcept;

// Whether results appear among the messages of standard error: in the same file, pipe or terminal.
bool results_join_messages() noexcept;

// Formats the text, escapes its control characters as print_stderr() does, and writes it, so that
// names read from files (layers, classes, paths) cannot control the terminal.
template <class... Args>
void print_stdout(fmt::format_string<Args...> text, Args&&... args) {
  write_stdout(escape_controls(fmt::format(text, std::forward<Args>(args)...)));
}

// Flushes everything printed so far, through stdio too. Throws Error{failed} if any of it could not
// be written; if a pipe has lost its reader, ends the process by SIGPIPE.
void flush_output();

}  // namespace dpt
