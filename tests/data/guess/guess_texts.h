// What a guess says, for tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

#include "../folder.h"
#include "data/guess/guess.h"

namespace dpt {

// "path=..., targets=kind": without the folder of paths.
inline std::string settings_text(const DataGuess& g) {
  std::string out;
  for (const DataGuess::Setting& s : g.settings) {
    const std::string file = std::filesystem::path(s.value).filename().string();
    out += (out.empty() ? "" : ", ") + s.key + "=" + (s.is_path ? file : s.value);
  }
  return out;
}
inline bool notes(const DataGuess& g, const std::string& text) {
  return std::ranges::any_of(g.notes, [&](const std::string& n) { return has(n, text); });
}

}  // namespace dpt
