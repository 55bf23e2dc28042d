// Tar archives for tests.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "folder.h"

namespace dpt {

inline std::string tar_header(const std::string& name, uint64_t size) {
  std::string h(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { h.replace(at, text.size(), text); };
  put(0, name);
  put(100, "0000644");
  put(124, fmt::format("{:011o}", size));
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\0"
                       "00",
                       8));
  uint64_t sum = 0;
  for (const char c : h) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return h;
}

inline std::string tar(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string out;
  for (const auto& [name, bytes] : files) {
    out += tar_header(name, bytes.size()) + bytes;
    out.resize((out.size() + 511) / 512 * 512, '\0');
  }
  return out + std::string(1024, '\0');
}

}  // namespace dpt
