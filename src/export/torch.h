// A spec as a PyTorch program that runs on CPUs: one file, and .npy files for data that PyTorch
// cannot make. It needs PyTorch, and, where it uses them, numpy, torchvision and safetensors.
#pragma once

#include <cstdint>
#include <string>

#include "base/tensor.h"
#include "parallel/exchange.h"
#include "spec/spec.h"

namespace dpt {

// What the spec itself does not say: sizes of its data, and what the machine decides.
struct TorchExport {
  TensorDesc input;        // [n, ...]: samples as the model takes them, after transforms
  TensorDesc target;       // [n, ...]: after target transforms
  int64_t samples = 0;     // of the data set, after `limit`
  int64_t classes = 0;     // of its targets; 0: they are values
  int64_t tokens = 0;      // of its inputs; 0: they are numbers
  bool ignores = false;    // some targets are the loss's ignore_index
  int ranks = 1;           // replicas that samples are dealt to
  int replicas = 1;        // of all ranks
  int shards = 1;          // of a batch, each with gradients of its own
  int64_t accumulate = 1;  // micro-batches of a batch, chunks of a pipeline among them
  int64_t batch = 1;       // what the optimizer sees: of all ranks, all micro-batches together
  int64_t epochs = 1;      // that are begun
  int64_t steps = 0;       // of the whole run
  Exchange exchange{};     // of ranks
  bool deferred_batch_norm = false;
  std::string program{};  // its file, beside which .npy files lie; empty: standard output
};

// A complete program with the same initial weights, the same order of samples and the same
// formulas, so that one loss curve can be laid over the other. It prints dptrain's epoch lines, and
// `--losses FILE` makes it write the loss of every step as metrics.jsonl has it, `--weights FILE`
// load weights of dptrain, `--save FILE` write its own.
// Throws Error{spec} with the reason where something can't be said in PyTorch.
std::string export_torch(const Spec& spec, const TorchExport& query);

// Writes the .npy files that the program reads, named PROGRAM-train-x.npy and so on: the data sets
// that PyTorch cannot make; nothing for others. Throws Error{spec} where they take more than 1 GiB,
// Error{failed} where a file cannot be written. REQUIRES: export_torch() accepts the same.
void write_torch_arrays(const Spec& spec, const TorchExport& query);

}  // namespace dpt
