// What the parts of an exported program share. Each part gives Python text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "export/torch.h"
#include "graph/graph.h"
#include "layers/model.h"
#include "optim/precision.h"
#include "optim/schedule.h"

namespace dpt {

// What is known of the program before a line of it is written.
struct TorchFacts {
  const Spec& spec;
  const TorchExport& query;
  Graph graph;                       // for one sample, with the loss
  std::vector<LoweredLayer> layers;  // of the model
  Divisor divisor = Divisor::samples;
  bool ddp = false;  // ranks of torch.distributed; else one process
  MixedPrecision mixed;
  std::string_view autocast;  // "bfloat16"; empty: nothing is mixed

  bool by_class() const { return graph.correct != kNoValue; }  // accuracy has a meaning
  // The last extent of the output has the scores of classes, and there are others between.
  bool last_extent() const;
  bool deferred() const;  // there is batch norm, and it is deferred
  // Each step's loss is the one of all ranks. ReduceLROnPlateau must see the same on every rank.
  bool global_loss() const;
  bool needs_metric() const;
  // Batch norm's statistics are not those that it has in the program's process.
  bool norms_replicas() const;
  // The program computes DataParallel's replicas one by one, each with batch norm of its own.
  bool forwards_replicas() const;
};

struct TorchModel {
  std::string classes;     // modules that PyTorch does not have; empty: none needed
  std::string expression;  // "nn.Sequential(\n    nn.Flatten(),\n    ...)"
};

// Modules in dptrain's order, so that torch draws the same initial weights, under the same
// state_dict names.
TorchModel torch_model(const TorchFacts& facts);

// The function `train_data` or `test_data`, which makes a torch Dataset, and what it needs. Throws
// Error{spec} where the data cannot be written as a program, or where the program has no file.
std::string torch_data(const TorchFacts& facts, Split split);

// A class that both need; empty: none.
std::string torch_data_helpers(const TorchFacts& facts);

// Whether samples are changed at random.
bool torch_draws(const Spec& spec);

// The functions `train` and, where the spec evaluates, `evaluate`.
std::string torch_training(const TorchFacts& facts);

// Every line of `text` moved right; empty lines stay empty.
std::string indent(std::string_view text, int columns);

// A definition with the two empty lines that stand before it.
inline std::string section(std::string_view text) { return "\n\n" + std::string(text); }

// The row of a table that a spec chose. REQUIRES: it is a row of a table of Type.
template <class Type>
const Type& type_of(const Choice& choice) {
  return *static_cast<const Type*>(choice.what);
}

}  // namespace dpt
