// The rows of `dptrain bench`: what each one runs, and its measurements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dpt {

struct BenchRow {
  std::string mode;        // single, dp, ddp
  int64_t devices = 1;     // over all ranks
  int64_t batch_size = 1;  // over all devices
  std::string precision = "fp32";
  std::vector<std::string> overrides{};  // key=value, which turn the spec into this row's
};

// Facts about a row's run that are known before it runs.
struct RowFacts {
  int ranks = 1, workers = 1;    // workers: over all ranks
  int gpus = 0;                  // used by the workers; 0: they run on cores
  int64_t together = 1;          // up to this many steps complete at once (CUDA graphs)
  int64_t fewest = 0, most = 0;  // samples of a worker in a full step
  int barriers = 0;              // barriers per step
  bool loss_on_one = false;      // one device computes the loss for all
  double remote = 0;             // see remote_share()
  double bubble = 0;             // share of a pipeline step that devices wait, by FLOPs
  double predicted_bytes = 0;    // memory, as `dptrain plan` predicts it
};

// Seconds in the marked steps of a run, summed over all workers.
struct WorkerSeconds {
  double compute = 0, communication = 0, waiting = 0;
  double slowest = 0;  // compute of the busiest worker
  double taken = 0;    // part of both while other programs had the core; 0 for GPUs
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
  double seconds = 0;  // duration of the timed steps
  int64_t samples = 0;
  WorkerSeconds spent;
  double peak_bytes = 0;  // memory of all ranks; shared memory counts once
  RowFacts facts;
  std::string data;  // description of the data set, one line
};

// A row over all rounds. Times are in milliseconds per sample.
struct RowResult {
  BenchRow row;
  RowFacts facts;
  std::string data;
  double ms_per_sample = 0;         // median of the rounds
  double fastest = 0, slowest = 0;  // extremes of the rounds
  // Quartiles of the rounds: their variation without outliers.
  double lower = 0, upper = 0;
  WorkerSeconds spent;    // of the rounds between the quartiles
  double peak_bytes = 0;  // the most of all rounds
  int rounds = 0;
  std::string refused{};  // why the row could not be run; then the results above are unset
  int refused_code = 0;   // a Fault

  double samples_per_second() const { return 1000 / ms_per_sample; }
  double share(double WorkerSeconds::*what) const { return spent.*what / spent.total(); }
};

// "dp on 2 devices, batch 128", with the precision unless it is fp32.
std::string name_of(const BenchRow& row);

}  // namespace dpt
