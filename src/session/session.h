// A run as it will be, made before the first batch: data, who does what, programs for every size of
// a group of shards, the plan. Nothing is computed here, and `dptrain plan` prints it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/interface/load.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "graph/passes/precision.h"
#include "graph/program/plan.h"
#include "graph/program/program.h"
#include "layers/loss.h"
#include "optim/gradient_scaler.h"
#include "optim/optimizer.h"
#include "parallel/mode.h"
#include "session/step_rows.h"
#include "spec/spec.h"

namespace dpt {

// All words that a spec may use.
Vocabulary vocabulary();

struct Session {
  Spec spec;
  std::string initial_weights_place;  // "spec.yaml:7:18", where the spec names them; else empty
  const ModeType* mode = nullptr;
  const LossType* loss = nullptr;
  const OptimizerType* optimizer = nullptr;
  Topology who;
  Exchange exchange;
  std::string device = "cpu";
  std::string note;  // why `device: auto` is a CPU; empty: nothing to say
  bool on_gpu() const { return device == "cuda"; }
  cuda::GpuSurvey gpus;            // where CUDA was asked
  std::vector<int> gpu_of_worker;  // numbers among those that CUDA shows
  bool sums_on_host() const {
    return on_gpu() && who.replicas() > 1 && exchange.backend == Exchange::Backend::host;
  }
  // Optimizer states that workers keep for themselves; GPUs bring theirs to the buffers, like all.
  bool own_states() const { return exchange.shard_states && !on_gpu(); }
  // The stages of a replica are processes, a device each.
  bool stages_apart() const { return who.devices < who.span; }
  // A GPU gets whole steps as graphs: no host takes part within one, neither by sums nor by saying
  // that an event of another GPU is recorded.
  bool captures_steps() const {
    const bool by_hosts =
        (who.replicas() > 1 || stages_apart()) && exchange.backend == Exchange::Backend::host;
    return on_gpu() && spec.graphs && !by_hosts && (who.span == 1 || stages_apart());
  }
  bool tf32 = false;  // products on GPUs round factors of f32 to TF32

  PrecisionPolicy precision;
  ScalerSettings scaler;

  Dataset train;
  std::optional<Dataset> test;  // where the spec asks for evaluation
  std::unique_ptr<Feeder> feeder, test_feeder;

  std::optional<StepCutter> batches, test_batches;
  int64_t global_batch = 1;  // what the optimizer sees
  Divisor divisor = Divisor::samples;
  bool takes_empty_steps = false;  // StepResult::empty can be: layers/model.h
  int64_t terms_per_sample = 1;    // see layers/model.h

  Graph graph;               // of one shard of the usual size: for names, counts and plans
  std::vector<Rows> groups;  // of shards, each computed as one batch: program.h, note [groups]
  FlatLayout layout;
  std::optional<Pipeline> pipeline;  // where the mode cuts the layers into stages itself
  std::vector<int> placement;        // of units, then: layers/model.h
  std::vector<int> slots;            // of each stage: chunks that it may have in flight
  int turns() const;                 // chunks after which all slots come round again
  // Whether a pipeline that is given `chunks` micro-batches at once, of which the last ones may be
  // empty, has no more behind this one. Without a pipeline each is alone.
  bool last_chunk(const StepRows& rows, size_t micro) const;
  // The last batch before this one that lay in the same slot of the stage; -1: none did.
  int64_t same_slot_before(int stage, int64_t batch) const;
  // Of an evaluation: parts that the stage's device has done once it is done with this batch.
  int64_t test_parts_until(int stage, int64_t batch) const;
  Plan plan;
  int test_cuts = 0;  // of the forward part of an evaluation: program.h, note [cuts]
  std::map<GroupRows, Program> programs, test_programs;
  std::map<GroupRows, Program> last_programs;  // of a last chunk that alone keeps its activations

  int64_t epochs = 0;            // that are begun: the last may be cut short by `steps`
  int64_t steps = 0;             // of the whole run
  int64_t parameters() const;    // trainable elements
  int states() const;            // of the optimizer, for each parameter
  bool cycles_momentum() const;  // the schedule sets the optimizer's momentum
  // Targets of the test set that the loss does not ignore: the denominator of the accuracy.
  // REQUIRES: test.
  double test_places() const {
    return static_cast<double>(test->targets.desc.shape.elements() - test->ignored);
  }
  bool ignores() const { return train.ignored > 0 || (test && test->ignored > 0); }
};

// How ranks that somebody else started change a session; empty: dptrain starts its own.
struct SessionQuery {
  std::optional<int> world;
  bool runs = true;                     // false: it is only looked at, so a GPU need not be there
  std::optional<cuda::GpuSurvey> gpus;  // in the place of asking CUDA
  // Made-up data sets are not generated, only sized: the session can be described, but not run.
  bool sizes_only = false;
};

// Complaints about the spec (shapes that do not fit, settings that exclude each other) go to `d`;
// null then. Throws Error{data} where data can't be read, Error{device} for a device that is not
// there.
std::unique_ptr<Session> make_session(Spec spec, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
