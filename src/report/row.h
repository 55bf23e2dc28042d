// The rows of `dptrain bench`: what each one runs, and what was measured of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dpt {

struct BenchRow {
  std::string mode;        // single, dp, ddp
  int64_t devices = 1;     // of all ranks together
  int64_t batch_size = 1;  // of all devices together
  std::string precision = "fp32";
  std::vector<std::string> overrides{};  // key=value that make the spec this row's
};

// What a row's run is made of; known before it is run.
struct RowFacts {
  int ranks = 1, workers = 1;    // workers: of all ranks together
  int gpus = 0;                  // that these have; 0: they have cores
  int64_t together = 1;          // steps end at once, so many or a part of these (CUDA graphs)
  int64_t fewest = 0, most = 0;  // samples of a worker in a full step
  int meetings = 0;              // of a step
  bool loss_on_one = false;      // the loss is computed by one device for all
  double foreign = 0;            // see foreign_share()
  double bubble = 0;             // share of a step in which devices of a pipeline wait, by FLOPs
  double predicted_bytes = 0;    // of memory, as `dptrain plan` prints them
};

// Seconds of one run's marked steps, over all its workers.
struct WorkerSeconds {
  double compute = 0, communication = 0, waiting = 0;
  double slowest = 0;  // compute of the worker that computes longest
  double taken = 0;    // of compute and communication: other programs had the core; not of GPUs
  double total() const { return compute + communication + waiting; }
  WorkerSeconds& operator+=(const WorkerSeconds& o) {
    compute += o.compute;
    communication += o.communication;
    waiting += o.waiting;
    slowest += o.slowest;
    taken += o.taken;
    return *this;
  }
};

// One run of one row.
struct Reading {
  double seconds = 0;  // of the timed steps
  int64_t samples = 0;
  WorkerSeconds spent;
  double peak_bytes = 0;  // of memory, all ranks together, what they share counted once
  RowFacts facts;
  std::string data;  // what it was trained on, one line
};

// A row over all rounds.
struct RowResult {
  BenchRow row;
  RowFacts facts;
  std::string data;
  double ms_per_sample = 0;         // the median
  double fastest = 0, slowest = 0;  // of the rounds, in the same unit
  // Quartiles of the rounds, in the same unit: the variation between rounds without outliers.
  double lower = 0, upper = 0;
  WorkerSeconds spent;    // of all rounds
  double peak_bytes = 0;  // the most of all rounds
  int rounds = 0;
  std::string refused{};  // why the row could not be run; then nothing else holds
  int refused_code = 0;   // as Fault

  double samples_per_second() const { return 1000 / ms_per_sample; }
  double share(double WorkerSeconds::*what) const { return spent.*what / spent.total(); }
};

// "dp on 2 devices, batch 128", with the precision where it is not fp32.
std::string name_of(const BenchRow& row);

}  // namespace dpt
