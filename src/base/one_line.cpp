#include "base/one_line.h"

#include "base/stderr.h"

namespace dpt {

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : escape_controls(text)) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out;
}

}  // namespace dpt
