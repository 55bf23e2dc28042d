#include "cli/terminal_text.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "base/status_line.h"

namespace dpt {

size_t text_width() {
  if (const char* columns = std::getenv("COLUMNS")) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view text = columns;
    size_t n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    if (n > 0) return n;
  }
  return static_cast<size_t>(terminal_columns(STDOUT_FILENO, 0));
}

bool shows_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (!value || !*value) continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos ||
           locale.find("utf-8") != locale.npos;
  }
  return false;
}

}  // namespace dpt
