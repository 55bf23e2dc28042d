// Collects what instructions move, by name.
#pragma once

#include <algorithm>
#include <string>

#include "describe/traffic.h"

namespace dpt {

class TrafficLines {
 public:
  void add(const std::string& name, const Traffic& bytes) {
    if (bytes == Traffic{}) return;
    const auto at = std::ranges::find(lines_, name, &TrafficLine::name);
    if (at == lines_.end())
      lines_.push_back({name, bytes});
    else
      at->bytes += bytes;
  }
  const WorkerTraffic& lines() const { return lines_; }

 private:
  WorkerTraffic lines_;
};

}  // namespace dpt
