// Messages to standard error: progress, warnings and errors. Writing one never throws and never
// ends the run, whatever standard error is: a full disk, a closed pipe, a file over its size limit.
// A pipe that is full and not read is waited for, until a stop is asked for (write_bytes.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace dpt {

// A text for a terminal or a log: control bytes other than line breaks and tabs, and bytes that are
// no UTF-8, become \x1b, so that names out of files cannot steer the terminal.
std::string escape_controls(std::string_view text);

// Writes the bytes as they are, control sequences of a terminal included. Thread: any; up to 4096
// bytes are one write.
void write_stderr(std::string_view bytes) noexcept;

// The status line: the last line of the terminal, which the next call replaces, and which messages
// and results (base/stdout.h) remove first. Such a line is not escaped. Thread: one at a time.
bool has_status_line();  // standard error is a terminal that can erase a line
void write_status(std::string_view line);
void clear_status() noexcept;
// Another process, forked from this one or before it, may write the status line.
void expect_status() noexcept;

// Formats the message, escapes its control bytes and writes it.
template <class... Args>
void print_stderr(fmt::format_string<Args...> text, Args&&... args) {
  write_stderr(escape_controls(fmt::format(text, std::forward<Args>(args)...)));
}

}  // namespace dpt
