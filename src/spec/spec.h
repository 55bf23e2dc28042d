// A run as its author specified it: typed, checked and complete. Later stages do not see YAML.
#pragma once

#include <any>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/registry_entry.h"

namespace dpt {

// The registry entries that a spec may name. The caller provides them, since this component knows
// no layers or data sets.
struct Registries {
  std::vector<const RegistryEntry*> layers, losses, optimizers, schedules, datasets, transforms,
      target_transforms, modes, precisions, initialisations;
};

// An entry of `model:`, or of a block's or residual's list, after blocks are expanded.
struct ModelItem {
  enum class Kind { layer, sequence, residual };
  Kind kind = Kind::layer;
  Choice layer;                     // kind layer
  std::vector<ModelItem> body;      // sequence (a block, or one of its repeats) or residual
  std::vector<ModelItem> shortcut;  // residual; empty: the identity
  bool has_shortcut = false;
  std::string name;                        // empty: its index in the list, as in nn.Sequential
  std::vector<Located<std::string>> from;  // empty: the previous entry
  // kind layer: the keys of `init`, which name parameters; others have PyTorch's default
  std::vector<std::pair<std::string_view, Choice>> init;
  bool freeze = false;            // none of its parameters are trained
  std::optional<int64_t> device;  // empty: the device of the previous entry
  bool checkpoint = false;  // recompute activations in the backward pass (activation checkpointing)
  Span where;

  // The initialization of a parameter of the layer, "weight" or "out_proj.weight"; null: PyTorch's
  // default. The keys `weight` and `bias` are for all parameters whose name ends so.
  const Choice* init_of(std::string_view parameter) const;
};

// Samples that are not trained on, to choose weights and settings by: a random part of the training
// set, or a data set of its own. At most one of the two is given.
struct ValidationSpec {
  double fraction = 0;  // of the training set; 0: not given
  Choice dataset;       // empty: not given
  bool on() const { return fraction > 0 || dataset.what != nullptr; }
  Span where;
};

struct DataSpec {
  Choice dataset;
  ValidationSpec validation;
  std::vector<Choice> transforms, target_transforms;
  std::optional<int64_t> batch_size;              // over all replicas: samples per optimizer step
  std::optional<int64_t> batch_size_per_replica;  // exactly one of the two is given
  bool auto_batch = false;  // batch_size is to be chosen before a session is made; it is empty
  bool shuffle = true;
  bool reshuffle =
      true;  // false: all epochs use the first epoch's order (DistributedSampler without set_epoch)
  std::string sampler;       // weighted: draws with replacement; empty: each sample once
  int64_t sampler_seed = 0;  // of DistributedSampler, where each replica has its own order
  bool drop_last = false;    // omit a smaller last batch
  bool pad = false;   // ddp: repeat samples so that all ranks have the same number, as in PyTorch
  int64_t limit = 0;  // use only the first samples; 0: all
  Span where;
};

// Evaluation on the validation set if there is one, else on the test set.
struct EvaluateSpec {
  bool on = false;
  int64_t every = 1;        // in epochs
  int64_t every_steps = 0;  // instead of `every`; 0: not given
  int64_t batch_size = 1000;
  // Beside the loss, by the names of spec/metric_name.h. Empty: the accuracy if the loss is one of
  // classes.
  std::vector<Located<std::string>> metrics;
  Span where;
};

struct ScheduleSpec {
  Choice schedule;              // empty: constant
  std::string interval;         // epoch | step; empty: the schedule's default (one_cycle: step)
  int64_t warmup = 0;           // intervals of linear warm-up
  double warmup_factor = 1e-2;  // of the learning rate, in the first interval
};

// Checkpoints, from which `--resume` continues a run. One is always written at the end of a run.
struct SaveSpec {
  bool on = true;
  int64_t every_epochs = 0;                  // epochs between checkpoints; 0: none by epoch
  int64_t every_steps = 0;                   // steps between checkpoints; 0: none by step
  std::optional<double> every_minutes = 10;  // since the last checkpoint; 0 or empty: none by time
  int64_t keep = 3;                          // number of checkpoints kept, the newest
  // The metric by which the best weights are kept; none: they are not. Empty: the loss if there is
  // a validation set, else none.
  std::string best;
};

struct LogSpec {
  int64_t every = 0;            // steps between step records in metrics.jsonl; 0: none
  std::string loss = "global";  // global | rank0
  bool shapes = false;          // print the DataParallel tutorial's "In Model: ..." lines
  bool tensorboard = false;     // write event files
  bool grad_norms = false;      // norm of each parameter's gradient in step records
  bool noise_scale = false;     // gradient noise scale in step records
};

// Ends a run whose evaluations have stopped improving.
struct EarlyStopSpec {
  int64_t patience = 0;  // evaluations without improvement; 0: the run is not stopped
  std::string metric;    // empty: the loss
  double min_delta = 0;  // a smaller change is no improvement
  Span where;
};

// Parameters by pattern: `bias`, `norm`, or a glob of their names, such as `layer1.*`.
using Patterns = std::vector<Located<std::string>>;

// Settings of some parameters, in place of the optimizer's.
struct ParameterGroupSpec {
  Patterns match;
  std::optional<double> lr, weight_decay;
  Span where;
};

// Multiplies learning rates by the global batch over `batch`, or by the root of that.
struct LrScaleSpec {
  std::string rule = "none";     // none | linear | sqrt
  std::optional<int64_t> batch;  // empty: data.batch_size_per_replica
  Span where;
};

struct ClipSpec {
  std::optional<double> max_norm;  // clip_grad_norm
  double norm_type = 2;            // 1, 2 or .inf
  std::optional<double> value;     // clip_grad_value
};

struct DeviceSpec {
  std::string device = "auto";   // auto | cpu | cuda
  std::optional<int64_t> count;  // `devices: 2`, or the length of a list; empty: the mode's default
  std::vector<int64_t> indices;  // `devices: [cpu:0, cpu:1]`
  std::optional<int64_t>
      cores;  // worker threads per CPU device; empty: the machine's cores, divided evenly
  Span where;
};

struct Spec {
  std::optional<double> memory_limit;  // MiB per device; empty: none
  std::string name;                    // empty: the file's name without extension
  std::string path;  // of the file; data sets given by name are looked for beside it
  int64_t seed = 0;
  DataSpec data;
  std::vector<ModelItem> model;
  std::string initial_weights;   // a file of safetensors or torch.save; empty: PyTorch's
  bool partial_weights = false;  // take what fits of initial_weights, and keep the rest
  Choice loss;
  Choice optimizer;
  ScheduleSpec schedule;
  ClipSpec clip;
  std::optional<int64_t> epochs, steps;  // whichever comes first ends the run; neither: one epoch
  std::optional<double> minutes;         // ends the run, too, with a checkpoint
  EarlyStopSpec early_stop;
  std::optional<double> ema;  // decay of the averaged weights, which evaluations use
  std::vector<ParameterGroupSpec> parameter_groups;
  Patterns no_decay;  // parameters without weight decay
  Patterns freeze;    // parameters that are not trained
  LrScaleSpec lr_scale;
  bool sync_batch_norm = false;  // compute batch norm's statistics over all replicas
  int64_t accumulate = 1;        // micro-batches per global batch
  DeviceSpec devices;
  bool graphs = true;                                 // on GPUs: capture steps as CUDA graphs
  Choice parallel;                                    // never empty: defaults to `single`
  Choice precision;                                   // never empty: defaults to `fp32`
  std::string random = "counter";                     // counter | torch
  std::optional<int64_t> reproducible_shards;         // reproducible: {shards: 8}
  std::optional<std::string> reproducible_gradients;  // fused | stored; empty: depends on hosts
  EvaluateSpec evaluate;
  SaveSpec save;
  LogSpec log;
  std::string out;  // empty: the next number in runs/NAME
  Span where;       // line 1 of the file, for errors about what is missing
  std::map<std::string, Span, std::less<>> locations;  // of values; keys like "data.batch_size"

  // The location of a key's value, or else of the section to which it belongs.
  Span at(std::string_view key) const;
};

// Checks a tree and converts it to a Spec. REQUIRES: the tables of `registries` and the source file
// outlive the Spec.
Spec read_spec(const Node& root, const Registries& registries, Diagnostics& d);

// Writes `key=value` of the command line into the tree before it is read. `argument` has this text
// as its path, so that errors read "data.batch_size=abc:1:17: error: ...". Examples of keys:
// data.batch_size, optimizer.lr (a key of whichever optimizer is chosen), model.conv1.out_channels
// (a layer by its name), model[2].p, model[3].body[0]. Missing sections are created. Setting one of
// two keys that exclude each other (batch_size, batch_size_per_replica) removes the other.
// read_spec() reports wrong keys and values at the argument.
void apply_override(Node& root, const SourceFile& argument, const Registries& registries,
                    Diagnostics& d);

// Reads a file and everything that it extends. Paths are relative to the file that contains them.
// Maps merge recursively; lists and other values are replaced. If a file chooses another optimizer
// (loss, ...) than its base, the base's settings for it are dropped. All files are kept in `files`,
// since locations point into them.
Node load_spec_file(const std::string& path, std::vector<std::unique_ptr<SourceFile>>& files,
                    const Registries& registries, Diagnostics& d);

// Loads a spec completely: the file, what it extends, and the overrides; then checks and converts
// it. Paths become absolute: those in a file are relative to that file's folder, those in an
// argument to the working directory. `tree` receives what to_yaml() writes into the run directory.
Spec load_spec(const std::string& path, const std::vector<std::string>& overrides,
               const Registries& registries, std::vector<std::unique_ptr<SourceFile>>& files,
               Diagnostics& d, Node* tree = nullptr);

}  // namespace dpt
