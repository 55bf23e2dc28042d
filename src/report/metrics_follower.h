// Reads a metrics.jsonl that a run is writing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace dpt {

class MetricsFollower {
 public:
  explicit MetricsFollower(const std::string& run) : path_(run + "/metrics.jsonl") {}

  // Calls `line` for each whole line that was added since the last call. `again` is called first if
  // the file is another one or shorter than before, as when a run is resumed: all its lines follow.
  void read(const std::function<void(std::string_view line)>& line,
            const std::function<void()>& again);

 private:
  std::string path_, pending_;
  ino_t id_ = 0;
  int64_t bytes_ = 0;  // read so far
};

}  // namespace dpt
