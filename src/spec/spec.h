// A run as its author wrote it: typed, checked, complete. Nothing after this stage sees YAML.
#pragma once

#include <any>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/nameable.h"

namespace dpt {

// The words a spec may use. This room knows no layer and no data set: whoever calls hands the
// tables down.
struct Vocabulary {
  std::vector<const Nameable*> layers, losses, optimizers, schedules, datasets, transforms,
      target_transforms, modes, precisions, initialisations;
};

// One entry of `model:`, or of a block's or residual's list, after blocks have been put in place.
struct ModelItem {
  enum class Kind { layer, sequence, residual };
  Kind kind = Kind::layer;
  Choice layer;                     // kind layer
  std::vector<ModelItem> body;      // sequence (a block, one of its repeats), residual
  std::vector<ModelItem> shortcut;  // residual; empty: the identity
  bool has_shortcut = false;
  std::string name;                        // empty: its number in the list, as in nn.Sequential
  std::vector<Located<std::string>> from;  // empty: what stands before it
  Choice weight_init, bias_init;           // kind layer; empty: torch's own for the layer
  bool freeze = false;                     // the parameters of all that is in it are not trained
  std::optional<int64_t> device;           // empty: that of the entry before
  bool checkpoint = false;                 // computed again in the backward part, not kept
  Span where;
};

struct DataSpec {
  Choice dataset;
  std::vector<Choice> transforms, target_transforms;
  std::optional<int64_t> batch_size;  // of all replicas together, what the optimizer sees
  std::optional<int64_t> batch_size_per_replica;  // exactly one of the two is given
  bool shuffle = true;
  bool reshuffle =
      true;  // false: every epoch in the order of the first (DistributedSampler without set_epoch)
  bool drop_last = false;  // leave out the last, smaller batch
  bool pad = false;   // ddp: repeat first samples so that every rank has as many, as torch does
  int64_t limit = 0;  // use the first so many samples; 0: all
  Span where;
};

struct EvaluateSpec {
  bool on = false;
  int64_t every = 1;  // epochs
  int64_t batch_size = 1000;
  Span where;
};

struct ScheduleSpec {
  Choice schedule;              // empty: constant
  std::string interval = "";    // epoch | step; empty: the schedule's own (one_cycle: step)
  int64_t warmup = 0;           // intervals of linear warm-up in front
  double warmup_factor = 1e-2;  // of the learning rate, at the first interval
};

// Checkpoints, of which a run that goes on with `--resume` begins. One is written where a run ends.
struct SaveSpec {
  bool on = true;
  int64_t every_epochs = 0;                  // between two others; 0: there are none
  int64_t every_steps = 0;                   // the same
  std::optional<double> every_minutes = 10;  // since the last one, after a whole step; 0 or empty:
                                             // never by time
  int64_t keep = 3;                          // the newest ones
};

struct LogSpec {
  int64_t every = 0;            // steps between two step records in metrics.jsonl; 0: none
  std::string loss = "global";  // global | rank0
  bool shapes = false;          // print the tutorial's "In Model: ..." lines
};

struct ClipSpec {
  std::optional<double> max_norm;  // clip_grad_norm
  double norm_type = 2;            // 1, 2 or .inf
  std::optional<double> value;     // clip_grad_value
};

struct DeviceSpec {
  std::string device = "auto";   // auto | cpu | cuda
  std::optional<int64_t> count;  // `devices: 2`, or the length of a list; empty: see design.md
  std::vector<int64_t> indices;  // `devices: [cpu:0, cpu:1]`
  std::optional<int64_t>
      cores;  // worker threads of each CPU device; empty: the machine's, shared evenly
  Span where;
};

struct Spec {
  std::optional<double> memory_limit;  // MiB of each device; empty: none
  std::string name;                    // empty: the file's name without its ending
  std::string path;  // of the file; data sets known by name are looked for beside it
  int64_t seed = 0;
  DataSpec data;
  std::vector<ModelItem> model;
  std::string initial_weights;  // a safetensors file; empty: torch's initialisation
  Choice loss;
  Choice optimizer;
  ScheduleSpec schedule;
  ClipSpec clip;
  std::optional<int64_t> epochs, steps;  // the first reached ends the run; neither: one epoch
  bool sync_batch_norm = false;          // statistics of all replicas
  int64_t accumulate = 1;                // micro-batches that make one global batch
  DeviceSpec devices;
  bool graphs = true;                          // on a GPU: steps are captured, and launched as one
  Choice parallel;                             // always there: `single` where nothing is written
  Choice precision;                            // always there: `fp32` where nothing is written
  std::string random = "counter";              // counter | torch
  std::optional<int64_t> reproducible_shards;  // reproducible: {shards: 8}
  EvaluateSpec evaluate;
  SaveSpec save;
  LogSpec log;
  std::string out;  // empty: the next number in runs/NAME
  Span where;       // line 1 of the file, for complaints about what is missing
  std::map<std::string, Span, std::less<>> places;  // of what was written, by "data.batch_size"

  // Where the value of a key stands, or else that of the section it belongs to.
  Span at(std::string_view key) const;
};

// Checks and types a tree. REQUIRES: the tables of `vocabulary` and the source file outlive the
// Spec.
Spec read_spec(const Node& root, const Vocabulary& vocabulary, Diagnostics& d);

// `key=value` of the command line, written into the tree before it is read. `argument` has that
// text as its path too: complaints read "data.batch_size=abc:1:17: error: ...". Paths:
// data.batch_size, optimizer.lr (a key of whatever optimizer stands there),
// model.conv1.out_channels (by the layer's name), model[2].p, model[3].body[0]. Makes sections that
// are missing; of two keys of which one may stand (batch_size, batch_size_per_replica) the new one
// stays. Wrong keys and values are found by read_spec, at the argument's place.
void apply_override(Node& root, const SourceFile& argument, const Vocabulary& vocabulary,
                    Diagnostics& d);

// Reads a file with everything it extends; paths are relative to the file that names them. Maps
// merge deep, lists and other values replace; another optimizer (loss, ...) than the base's
// replaces it with its keys. Every file read is kept in `files`, since places point into them.
Node load_spec_file(const std::string& path, std::vector<std::unique_ptr<SourceFile>>& files,
                    const Vocabulary& vocabulary, Diagnostics& d);

// The whole way: a file, what it extends, the arguments over it, typed and checked. Paths become
// absolute: one in a file is relative to the file it stands in, one in an argument to the working
// directory. `tree` gets what to_yaml then writes into the run directory.
Spec load_spec(const std::string& path, const std::vector<std::string>& overrides,
               const Vocabulary& vocabulary, std::vector<std::unique_ptr<SourceFile>>& files,
               Diagnostics& d, Node* tree = nullptr);

}  // namespace dpt
