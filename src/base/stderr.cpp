#include "base/stderr.h"

#include <cerrno>

#include <unistd.h>

#include "base/utf8.h"

namespace dpt {

std::string escape_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    const bool break_or_tab = character == "\n" || character == "\t";
    if (length != 0 && (break_or_tab || !is_control(character)))
      out += character;
    else
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(character.size());
  }
  return out;
}

void write_stderr(std::string_view bytes) noexcept {
  const int before = errno;
  while (!bytes.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  errno = before;
}

}  // namespace dpt
