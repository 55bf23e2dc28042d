// A message that every rank of a job could print, and one on each machine prints.
#pragma once

#include <filesystem>
#include <string_view>

#include "comm/local_socket.h"

namespace dpt {

// The first of these among the processes of a job on this machine speaks; while it lives, the
// others do not. Thread: one at a time; processes: any number at once.
class OncePerJob {
 public:
  // job: World::job. directory: of the lock; empty: as socket_directories() has it. Never fails:
  // where there can be no locks, everybody speaks.
  OncePerJob(std::string_view job, std::string_view what,
             const std::filesystem::path& directory = {});
  bool speaks() const { return speaks_; }

 private:
  Descriptor file_;  // with a lock on the byte whose number is the hash of job and what
  bool speaks_ = true;
};

}  // namespace dpt
