// Cores that the workers of one run have for themselves, among all runs of this user that use the
// same directory for such locks: concurrent runs pin their workers to different cores.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "comm/local_socket.h"

namespace dpt {

// Holds its cores until it and all processes that were forked meanwhile are gone, however they end.
// Thread: one at a time; processes: any number at once.
class CoreLease {
 public:
  CoreLease() = default;  // no cores

  // The first `wanted` of `candidates` that no other lease holds. Never fails and waits for 0.1 s
  // at most: where there can be no locks (private_directory() refuses all directories, or the file
  // system has none) the cores are the first of the candidates. directory: of the locks; empty: as
  // socket_directories() has it.
  CoreLease(std::span<const int> candidates, size_t wanted,
            const std::filesystem::path& directory = {});

  // In the order of the candidates. Empty: fewer than wanted are free, and none is held.
  const std::vector<int>& cores() const { return cores_; }
  // How many of the candidates others hold, as far as they were looked at.
  size_t taken() const { return taken_; }

 private:
  bool choose(std::span<const int> candidates, size_t wanted);

  Descriptor file_;  // with a lock on byte N for core N
  std::vector<int> cores_;
  size_t taken_ = 0;
};

}  // namespace dpt
