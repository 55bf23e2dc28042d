// Exports a spec as a PyTorch program for CPUs: one file, and .npy files for data that PyTorch
// cannot load. It needs PyTorch and, depending on the spec, numpy, torchvision and safetensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "data/dataset.h"
#include "parallel/exchange.h"
#include "spec/spec.h"

namespace dpt {

// Parameters that the optimizer updates with the same settings.
struct TorchGroup {
  std::vector<std::string> parameters;  // names in the state_dict
  double lr = 0, weight_decay = 0;
};

// What the spec itself does not say: sizes of its data, and the machine's choices.
struct TorchExport {
  TensorDesc input;            // [n, ...]: samples after transforms
  TensorDesc target;           // [n, ...]: after target transforms
  int64_t samples = 0;         // of the data set, after `limit`
  int64_t classes = 0;         // of the targets; 0: they are not classes
  int64_t tokens = 0;          // vocabulary size of the inputs; 0: they are not tokens
  bool ignores = false;        // some targets are the loss's ignore_index
  bool moves_targets = false;  // BatchLoader::moves_targets() of the training set
  int ranks = 1;               // replicas with per-replica sampling
  int replicas = 1;            // over all ranks
  int shards = 1;              // per batch; each computes its own gradients
  int64_t accumulate = 1;      // micro-batches per batch, including the chunks of a pipeline
  int64_t batch = 1;           // samples per optimizer step, over all ranks and micro-batches
  int64_t epochs = 1;          // epochs begun
  int64_t steps = 0;           // of the whole run
  Exchange exchange{};         // between ranks
  bool deferred_batch_norm = false;
  int64_t average_every = 0;         // Topology::average_every; 0: ranks train the same weights
  std::optional<double> lr{};        // of the optimizer, after lr_scale; empty: the spec's
  std::vector<TorchGroup> groups{};  // of the trained parameters; empty: all are one group
  const Dataset* fitted = nullptr;   // fitted_by() the form of a run, which reads data; null: none
  std::string program{};             // its path, beside which .npy files go; empty: standard output
};

// Returns a complete program with the same initial weights, order of samples and formulas, so that
// loss curves can be compared. It prints dptrain's epoch lines. `--losses FILE` writes the loss of
// every step in the format of metrics.jsonl, `--weights FILE` loads weights of dptrain, `--save
// FILE` writes the trained weights. Throws Error{spec} with the reason if the spec has no
// equivalent in PyTorch.
std::string export_torch(const Spec& spec, const TorchExport& query);

// Whether the program's ranks repeat some samples, as DistributedSampler does to make them even,
// though dptrain's do not: then losses differ.
bool repeats_samples(const Spec& spec, const TorchExport& query);

// Writes the .npy files that the program reads (PROGRAM-train-x.npy and so on) for data sets that
// PyTorch cannot load; writes nothing for others. Throws Error{spec} if they exceed 1 GiB, and
// Error{failed} if a file cannot be written. REQUIRES: export_torch() accepts the same arguments.
void write_torch_arrays(const Spec& spec, const TorchExport& query);

}  // namespace dpt
