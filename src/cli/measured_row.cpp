#include "cli/measured_row.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "comm/child.h"

namespace dpt::commands {

int start_row(const SpecArgument& spec, const BenchRow& row, int notes) {
  std::vector<std::string> words = {"dptrain", "bench", spec.path, "--row", std::to_string(notes)};
  words.insert(words.end(), spec.overrides.begin(), spec.overrides.end());
  words.insert(words.end(), row.overrides.begin(), row.overrides.end());
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  return run_in_child([&] {
    fcntl(notes, F_SETFD, 0);
    execv("/proc/self/exe", arguments.data());
    return static_cast<int>(Fault::failed);
  });
}

}  // namespace dpt::commands
