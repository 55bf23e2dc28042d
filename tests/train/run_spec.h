// Trains a spec in this process (and, for ddp, in processes of its own) as the program does.
#pragma once

#include <string>
#include <vector>

#include "sanitizers.h"
#include "train/run.h"

namespace dpt {

struct Ran {
  int code = 0;
  std::string out, err;                     // what was printed
  std::string weights;                      // the bytes of model.safetensors; empty: there is none
  std::string metrics;                      // the text of metrics.jsonl
  std::vector<double> losses() const;       // of each epoch
  std::vector<double> step_losses() const;  // of each recorded step
};

// Whether ddp can be run in this process: ThreadSanitizer has a thread of its own, and ranks are
// forked only where there is one. It would see the threads of one rank alone, anyway.
inline constexpr bool kCanFork = !kThreadSanitized;

// That CUDA is said to show, where runs get fake ones.
inline constexpr int kFakeGpus = 4;

// yaml: a whole spec. Files go to a fresh folder that is removed again. gpu: what runs of `device:
// cuda` get, where that is not a real one, and stuck_gpu_s as RunRequest has it.
Ran run_spec(const std::string& yaml, const std::vector<std::string>& overrides = {},
             const OpenGpu& gpu = {}, double stuck_gpu_s = 600);

// The same in a folder that stays, with what the run goes on from.
struct RunIn {
  std::string folder;       // t.yaml, out, err and, as the run directory, run
  std::string resume = "";  // as --resume has it
  Disk* disk = nullptr;     // that checkpoints are written to
  bool numbered = false;    // the run directory is runs/N in `folder`, not `run`
  double stuck_gpu_s = 600, watchdog_s = 10;
};
Ran run_spec_in(const RunIn& where, const std::string& yaml,
                const std::vector<std::string>& overrides = {}, const OpenGpu& gpu = {});

// The session of a whole spec, of threads. fake_gpus: CUDA is said to show kFakeGpus.
std::unique_ptr<const Session> session_of(const std::string& yaml,
                                          const std::vector<std::string>& overrides,
                                          bool fake_gpus = false);

// Makes `out`, the session of a whole spec under these circumstances. Returns the
// spec's errors.
std::string errors_of_session(const std::string& yaml, const std::vector<std::string>& overrides,
                              const SessionQuery& query, std::unique_ptr<const Session>& out);

// Checks that both ended well, with the same weights and losses to the bit.
void same(const Ran& a, const Ran& b);

// The bits of every float of the model, for comparing what is alike but for names.
std::string data_of(const std::string& safetensors);

}  // namespace dpt
