// all_gather() for the processes of a test: each host writes its text to a file of a folder.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/fail.h"

namespace dpt {

inline std::function<std::vector<std::string>(const std::string&)> gather_files(
    const std::string& folder, int host, int hosts) {
  return [=, round = 0](const std::string& own) mutable {
    const auto file = [&](int of) { return fmt::format("{}/{}.{}", folder, of, round); };
    std::ofstream(file(host) + ".new", std::ios::binary) << own;
    std::filesystem::rename(file(host) + ".new", file(host));
    std::vector<std::string> out;
    for (int h = 0; h < hosts; ++h) {
      for (int tries = 0; !std::filesystem::exists(file(h)); ++tries) {
        if (tries > 20000) fail(Fault::rank, "host {}: no text for 20 s", h);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::ifstream in(file(h), std::ios::binary);
      out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    ++round;
    return out;
  };
}

}  // namespace dpt
