// CoreLease: reserves cores for a run, so that concurrent runs pin their workers to different
// cores. It covers all runs of this user with the same lock directory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "comm/local_socket.h"

namespace dpt {

// Holds its cores until the object and all processes forked meanwhile are gone, however they end.
// Not thread-safe; any number of processes may hold leases.
class CoreLease {
 public:
  CoreLease() = default;  // no cores

  // Reserves the first `wanted` of `candidates` that no other lease holds. Does not fail, and waits
  // at most 0.1 s. If locks are impossible (private_directory() rejects all directories, or the
  // file system has no locks), the cores are the first `wanted` candidates. directory: where the
  // lock file is; empty: see socket_directories().
  CoreLease(std::span<const int> candidates, size_t wanted,
            const std::filesystem::path& directory = {});

  // In the order of the candidates. Empty: fewer than `wanted` are free, and none is held.
  const std::vector<int>& cores() const { return cores_; }
  // How many of the candidates that were tried are held by others.
  size_t taken() const { return taken_; }

 private:
  bool choose(std::span<const int> candidates, size_t wanted);

  Descriptor file_;  // a lock on byte N reserves core N
  std::vector<int> cores_;
  size_t taken_ = 0;
};

}  // namespace dpt
