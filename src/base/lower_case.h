// Capital letters of ASCII as small ones.
#pragma once

#include <string>

namespace dpt {

// Other characters, also letters beyond ASCII, stay as they are.
inline std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace dpt
