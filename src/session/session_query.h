// Circumstances of a session that are not in its spec.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/interface/load.h"
#include "session/evaluated_set.h"

namespace dpt {

struct SampleForm;
struct SessionData;

struct SessionQuery {
  // Number of ranks that an external launcher started; empty: dptrain starts its own.
  std::optional<int> world{};
  // The hosts (machines) on which these ranks run; empty: one. REQUIRES: world.
  struct Hosts {
    std::vector<int> first_ranks;  // of each host, as in Topology
    int host = 0;                  // this one
    // Cores for each rank if the spec does not say: the fewest that any host has.
    int cores_per_rank = 1;
  };
  std::optional<Hosts> hosts{};
  // Describes one host of several, before their number is chosen: accepts keys that apply only
  // between hosts.
  bool one_of_several = false;
  bool runs = true;                       // false: only described, so GPUs need not exist
  std::optional<cuda::GpuSurvey> gpus{};  // used instead of asking CUDA
  // Synthetic data sets are sized but not generated: the session can be described, but not run.
  bool sizes_only = false;
  // Evaluates on the final_test of this data instead of loading data. Null: data is loaded.
  const SessionData* data_of = nullptr;
  // The set to evaluate. Empty: the one that the spec evaluates during training. REQUIRES: not with
  // data_of.
  std::optional<EvaluatedSet> evaluates{};
  // What a trained run was fitted to: its categories, means, class names and so on, by which data
  // is read. Null: they are fitted to the training set. REQUIRES: not with data_of.
  const SampleForm* fitted = nullptr;
  std::string data_note{};  // added to the description of the training set
};

}  // namespace dpt
