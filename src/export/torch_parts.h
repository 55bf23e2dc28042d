// What the parts of an exported program share. Functions return Python source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "export/template.h"
#include "export/torch.h"
#include "graph/graph.h"
#include "layers/model.h"
#include "optim/precision.h"
#include "optim/schedule.h"

namespace dpt {

// Facts about the program, collected before any of it is written.
struct TorchFacts {
  const Spec& spec;
  const TorchExport& query;
  Graph graph;                       // for one sample, with the loss
  std::vector<LoweredLayer> layers;  // of the model
  Divisor divisor = Divisor::samples;
  // Evaluations have classes even if training mixes them.
  TensorDesc test_target;
  Divisor test_divisor = Divisor::samples;
  bool by_class = false;  // accuracy is defined
  bool ddp = false;       // several ranks of torch.distributed; otherwise one process
  MixedPrecision mixed;
  std::string_view autocast;  // "bfloat16" or "float16"; empty: no autocast

  // Ranks exchange gradients; otherwise they are one process, or train weights of their own.
  bool wraps_ddp() const { return ddp && query.average_every == 0; }
  bool mixes() const { return dpt::mixes(spec.data.transforms); }
  bool weighted() const { return spec.data.sampler == "weighted"; }
  // Samples are in one order, of which each rank has a share.
  bool shares_order() const { return ddp || spec.reproducible_shards.has_value(); }
  // The output's last dimension has class scores, and there are dimensions between it and the
  // batch.
  bool last_extent() const;
  bool deferred() const;  // there is batch norm, and its statistics are deferred
  // Each step's loss is summed over all ranks, because ReduceLROnPlateau must see the same value on
  // each.
  bool global_loss() const;
  bool needs_metric() const;
  // The optimizer's state with averages of the weights, which evaluations use; empty: none.
  std::string averaged_state() const;
  // Batch norm normalizes over other samples than one process of the program would.
  bool norms_replicas() const;
  // The program computes DataParallel's replicas one by one, each with its own batch norm
  // statistics.
  bool forwards_replicas() const;
};

struct TorchModel {
  bool has_graph = false, has_residual = false;  // which classes for lists of layers it needs
  std::string classes;                           // of layers that PyTorch lacks; empty: none
  std::string expression;                        // "nn.Sequential(\n    nn.Flatten(),\n    ...)"
};

// The model as modules in dptrain's order, so that PyTorch draws the same initial weights under the
// same state_dict names.
TorchModel torch_model(const TorchFacts& facts);

// The function `train_data` or `test_data`, which makes a torch Dataset, and its helpers. Throws
// Error{spec} if the data has no equivalent in a program, or needs files and the program has no
// path.
std::string torch_data(const TorchFacts& facts, Split split);

// Whether samples are transformed one by one as they are read, with the class Transformed.
bool torch_transforms_samples(const TorchFacts& facts);

// Whether the spec has random transforms of samples.
bool torch_draws(const Spec& spec);

// The function `train` and, if the spec evaluates, `evaluate`.
std::string torch_training(const TorchFacts& facts);

// A template with its values.
inline std::string filled(std::string_view name, const TemplateValues& values) {
  return fill(torch_template(name), values);
}

// The registry entry that a spec chose. REQUIRES: its registry holds entries of type Type.
template <class Type>
const Type& type_of(const Choice& choice) {
  return *static_cast<const Type*>(choice.what);
}

}  // namespace dpt
