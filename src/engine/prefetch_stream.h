// Whose samples are made ahead of the steps, and where in a batch each shard's are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/team.h"
#include "data/prefetch.h"
#include "parallel/topology.h"
#include "session/step_rows.h"

namespace dpt {

// One rank's passes over a data set with a reader. Thread: begin() by one while the others wait.
class Ahead {
 public:
  // Made before workers are bound to cores, since its threads take all that the process has.
  Ahead(const Dataset& dataset, const StepCutter& cutter, const Topology& who, int rank);

  // order: of the samples in this pass, of this rank. The batches before `first` are left out.
  void begin(std::span<const uint32_t> order, int64_t first = 0);
  // The inputs of consecutive shards of one worker, one after another. Throws TeamBroken, or what
  // reading threw.
  const std::byte* take(int64_t batch, int micro, Rows shards, const Team& team);
  void give_back(int64_t batch, int micro, Rows shards);

 private:
  struct Part {
    size_t first = 0, count = 0;  // samples of the rank's batch
  };
  Part& part(int64_t batch, int micro, int64_t shard);

  const StepCutter& cutter_;
  size_t shards_, sample_bytes_;
  std::vector<bool> own_;  // shards
  std::vector<Part> parts_;
  Prefetch prefetch_;
};

// What was taken, until it goes out of sight; nothing where samples lie in memory.
class Taken {
 public:
  Taken(Ahead* ahead, int64_t batch, int micro, Rows shards, const Team& team)
      : ahead_(ahead), batch_(batch), micro_(micro), shards_(shards) {
    if (ahead_ != nullptr) bytes_ = ahead_->take(batch, micro, shards, team);
  }
  ~Taken() {
    if (ahead_ != nullptr) ahead_->give_back(batch_, micro_, shards_);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  const std::byte* bytes() const { return bytes_; }

 private:
  Ahead* ahead_;
  int64_t batch_;
  int micro_;
  Rows shards_;
  const std::byte* bytes_ = nullptr;
};

}  // namespace dpt
