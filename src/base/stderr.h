// Messages on standard error: progress, warnings and errors. Writing never throws and never ends
// the run, even if standard error is a full disk, a closed pipe or a file at its size limit. A full
// pipe is waited for until a stop is asked for (write_bytes.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace dpt {

// Escapes control characters other than line breaks and tabs, and bytes that are not UTF-8, as
// \x1b, so that names read from files cannot control the terminal.
std::string escape_controls(std::string_view text);

// Writes the bytes unchanged, terminal control sequences included. Thread: any; up to 4096 bytes
// are written atomically.
void write_stderr(std::string_view bytes) noexcept;

// The same for threads that must not wait for the reader of a full pipe: writes at most the first
// 4096 bytes, or nothing and returns false.
bool write_stderr_without_waiting(std::string_view bytes) noexcept;

// The status line: the last line of the terminal. write_status() replaces it, and messages and
// results (base/stdout.h) erase it first. Its text is not escaped. Thread: one at a time.
bool has_status_line();  // standard error is a terminal that can erase a line
void write_status(std::string_view line);
void clear_status() noexcept;
// Declares that a related (forked) process may write a status line, so that messages of this one
// erase it.
void expect_status() noexcept;

// Formats the message, escapes its control characters and writes it.
template <class... Args>
void print_stderr(fmt::format_string<Args...> text, Args&&... args) {
  write_stderr(escape_controls(fmt::format(text, std::forward<Args>(args)...)));
}

// Notes are messages that say how a run goes, and no warning or error. From now on they, and the
// status line, are not written: by this process and those that it forks.
void silence_notes() noexcept;
bool notes_are_silent() noexcept;

template <class... Args>
void print_note(fmt::format_string<Args...> text, Args&&... args) {
  if (!notes_are_silent()) print_stderr(text, std::forward<Args>(args)...);
}

}  // namespace dpt
