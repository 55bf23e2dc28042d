#include "session/session.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd.h"
#include "backend/cuda/implementations/kernels.h"
#include "base/checked.h"
#include "base/count.h"
#include "base/fail.h"
#include "base/machine.h"
#include "graph/passes/layouts.h"
#include "graph/passes/widen.h"
#include "layers/model.h"
#include "optim/precision.h"
#include "optim/schedule.h"
#include "session/gpus.h"
#include "session/load_data.h"
#include "session/make_plan.h"
#include "session/memory.h"
#include "session/placement.h"
#include "session/programs.h"

namespace dpt {
namespace {

// Runs f and reports its Error{spec} to `d` at `where`.
template <class F>
void complain(Diagnostics& d, Span where, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (e.fault() != Fault::spec) throw;
    d.error(where, e.what());
  }
}

void choose_precision(Session& s) {
  const auto& type = *static_cast<const PrecisionType*>(s.spec.precision.what);
  s.tf32 = type.name == "tf32";
  if (s.tf32 && !s.on_gpu())
    fail(Fault::device,
         "precision 'tf32' is for CUDA devices; CPUs do not round the factors of fp32 products. "
         "Leave `precision` out");
  if (!type.mixed) return;
  const MixedPrecision mixed = type.mixed(s.spec.precision.settings);
  s.precision = {.level = mixed.level,
                 .half = type.dtype,
                 .cuda_lists = mixed.cuda_lists.value_or(s.on_gpu()),
                 .scales = mixed.scaler.on};
  if (!s.precision.on()) return;
  s.scaler = mixed.scaler;
  if (!s.on_gpu() && !computes_in(type.dtype) && !mixed.emulate)
    fail(Fault::device,
         "precision '{0}' would be emulated on this CPU, which is slower than fp32: {1}. To study "
         "what it does, write `precision: {{{0}: {{emulate: true}}}}`",
         type.name,
         type.dtype == DType::bf16 ? "this CPU has no AVX512-BF16"
                                   : "no kernel for CPUs computes in it");
}

constexpr int kGpusOfPlans = 2;  // for a plan, if the number of GPUs is unknown

void place(Session& s, const SessionQuery& query, Diagnostics& d) {
  s.mode = static_cast<const ModeType*>(s.spec.parallel.what);
  ModeQuery q;
  const DeviceSpec& devices = s.spec.devices;
  if (devices.count) q.devices = static_cast<int>(*devices.count);
  if (devices.cores) q.cores = static_cast<int>(*devices.cores);
  if (s.spec.reproducible_shards) q.shards = static_cast<int>(*s.spec.reproducible_shards);
  q.machine_cores = static_cast<int>(usable_cores().size());
  if (s.on_gpu()) {
    q.cores = 1;  // a thread that controls the GPU
    if (!q.devices && !query.world && s.mode->name != "single" && !s.mode->pipeline)
      q.devices = s.gpus.count > 0 ? s.gpus.count : kGpusOfPlans;
  }
  q.world = query.world;
  q.devices_per_replica = devices_of(s.spec.model);
  if (s.mode->pipeline) s.pipeline = s.mode->pipeline(s.spec.parallel.settings);
  if (s.mode->exchange) s.exchange = s.mode->exchange(s.spec.parallel.settings);
  if (query.world && *query.world > 1 && !s.mode->processes)
    d.error(s.spec.parallel.where,
            fmt::format("{} ranks were started, but parallel mode '{}' is one process; write "
                        "`parallel: ddp`, or start one",
                        *query.world, s.mode->name));
  complain(d, s.spec.parallel.where,
           [&] { s.topology = s.mode->topology(s.spec.parallel.settings, q); });
}

// "96 or 128"; if n is less than `of`, only the multiple above: "4".
std::string multiples_around(int64_t n, int64_t of) {
  const int64_t below = n / of * of;
  return below == 0 ? fmt::format("{}", of) : fmt::format("{} or {}", below, below + of);
}

// Limits the memory for bookkeeping per micro-batch and shard or stage.
void check_pieces(const Session& s, int64_t micro_batches, Diagnostics& d) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const int64_t stages =
      s.pipeline ? int64_t{s.topology.devices_per_replica} * s.pipeline->stages_a_device : 1;
  const int64_t pieces =
      (Checked(micro_batches) * std::max<int64_t>(s.topology.shards, stages)).value();
  if (pieces > kMost)
    d.error(s.spec.at("accumulate"),
            fmt::format("{} micro-batches for {} {} are {} pieces of a batch; at most {} are "
                        "possible: use fewer micro-batches (`accumulate`, `chunks`)",
                        micro_batches, std::max<int64_t>(s.topology.shards, stages),
                        s.topology.shards >= stages ? "shards" : "stages", pieces, kMost));
}

// Sets the global batch, and splits it.
void partition_batches(Session& s, Diagnostics& d) {
  const DataSpec& data = s.spec.data;
  const int64_t replicas = s.topology.replicas();
  const int64_t n = s.train_samples();
  if (!data.batch_size && !data.batch_size_per_replica) {
    d.error(s.spec.at("data.batch_size"), "a session needs a number instead of 'auto'");
    return;
  }
  s.global_batch =
      data.batch_size
          ? *data.batch_size
          : (Checked(*data.batch_size_per_replica) * replicas * s.spec.accumulate).value();
  const bool per_replica_sampling = s.topology.per_replica_sampling;
  if (per_replica_sampling && s.global_batch % replicas != 0)
    d.error(s.spec.at("data.batch_size"),
            fmt::format("batch_size {} cannot be split evenly across {} {}; use {}, or give "
                        "batch_size_per_replica",
                        s.global_batch, replicas,
                        s.topology.devices_per_replica == 1 ? "ranks" : "replicas",
                        multiples_around(s.global_batch, replicas)));
  if (data.pad && !per_replica_sampling)
    d.error(s.spec.at("data.pad"),
            "`pad` needs `parallel: ddp` without `reproducible`: only then does each rank have "
            "its own samples; leave it out");
  if (!d.ok()) return;
  Batches batches;
  batches.assignment = {.samples = n,
                        .ranks = per_replica_sampling ? s.topology.replicas() : 1,
                        .remainder = data.pad ? SampleAssignment::Remainder::pad
                                              : SampleAssignment::Remainder::exact};
  batches.batch = per_replica_sampling ? s.global_batch / replicas : s.global_batch;
  batches.drop_last = data.drop_last;
  if (batches.steps() == 0)
    d.error(s.spec.at("data.drop_last"),
            fmt::format(
                "the data set has {}, fewer than a batch of {}; use a smaller batch_size, or leave "
                "drop_last out",
                counted(n, "sample"), s.global_batch));
  if (!d.ok()) return;
  // More micro-batches than samples would leave some of them empty.
  const int64_t parts = s.spec.accumulate * (s.pipeline ? s.pipeline->chunks : 1);
  if (s.pipeline && s.pipeline->stages_a_device > 1 && parts > batches.batch)
    d.error(
        s.spec.at("data.batch_size"),
        fmt::format("a batch of {} samples cannot be split into {} chunks; use fewer `chunks` or a "
                    "larger batch",
                    batches.batch, parts));
  check_pieces(s, std::min(parts, batches.batch), d);
  if (!d.ok()) return;
  s.batches.emplace(batches, s.topology, std::min(parts, batches.batch));
  if (!s.test) return;
  Topology common = s.topology;  // the evaluated set has one order, split evenly over all shards
  common.reproducible = true;
  s.test_batches.emplace(Batches{.assignment = {.samples = s.test_samples(),
                                                .ranks = 1,
                                                .remainder = SampleAssignment::Remainder::exact},
                                 .batch = s.spec.evaluate.batch_size},
                         common, 1);
}

// Whether a replica has exactly one sample in some micro-batch of `batch`.
bool leaves_one_sample(const Session& s, const BatchPartitioner& batches, int64_t batch) {
  StepRows rows;
  batches.step(batch, rows);
  for (const auto& micro : rows.micro)
    for (int shard = 0; shard < s.topology.shards; ++shard) {
      const Rows replica = s.topology.replica_of(shard, s.spec.sync_batch_norm);
      int64_t samples = 0;
      for (int64_t i = replica.begin; i < replica.end; ++i)
        samples += micro[static_cast<size_t>(i)].rows.count();
      if (samples == 1) return true;
    }
  return false;
}

// Whether batch norm normalizes with moments over the batch alone: one value per sample and
// channel.
bool takes_variance_of_samples(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const GraphNode& n) {
    const Shape& x = graph[n.in[0]].desc.shape;
    const bool own = n.op->takes_batch_moments && n.op->takes_batch_moments(n.attrs);
    return own && x.elements() == x[0] * x[1];
  });
}

// The first batch that leaves a replica with one sample; -1: none. Only the last batches of an
// epoch can differ from the first.
int64_t batch_of_one_sample(const Session& s, const BatchPartitioner& batches) {
  const int64_t steps = batches.steps();
  for (const int64_t batch : {int64_t{0}, std::max<int64_t>(0, steps - 2), steps - 1})
    if (leaves_one_sample(s, batches, batch)) return batch;
  return -1;
}

// A variance needs two values. PyTorch reports this too, but only when it reaches that batch.
void check_batch_norm(const Session& s, Diagnostics& d) {
  const int64_t step = takes_variance_of_samples(s.graph) ? batch_of_one_sample(s, *s.batches) : -1;
  if (step >= 0)
    d.error(s.spec.at("data.batch_size"),
            fmt::format(
                "batch {} of {} leaves a replica with a single sample, which has no variance for "
                "batch norm; change {}{}",
                step + 1, s.batches->steps(),
                s.batches->accumulate() > 1 ? "batch_size or accumulate" : "batch_size",
                step == 0 ? "" : ", or set `drop_last: true`"));
  if (s.test_programs.empty() || !takes_variance_of_samples(s.test_programs.begin()->second.graph))
    return;
  if (const int64_t batch = batch_of_one_sample(s, *s.test_batches); batch >= 0)
    d.error(
        s.spec.at("evaluate.batch_size"),
        fmt::format("batch {} of {} of the {} set leaves a replica with a single sample, which has "
                    "no variance for batch norm; change the batch_size of `evaluate`, or set "
                    "`track_running_stats: true`",
                    batch + 1, s.test_batches->steps(), s.evaluated_set()));
}

// Devices must be numbered without gaps, and each stage must compute something.
void check_placement(const Session& s, Diagnostics& d) {
  for (int device = 0; device < s.topology.devices_per_replica; ++device)
    if (std::ranges::find(s.graph.stage_device, device) == s.graph.stage_device.end())
      d.error(
          s.spec.at("model"),
          fmt::format("device {0} has no layer, but device {1} does; the devices of a replica are "
                      "numbered from 0 without gaps: give a layer `device: {0}`, or lower the "
                      "other numbers",
                      device, s.topology.devices_per_replica - 1));
  for (int stage = 0; stage < s.graph.stages(); ++stage)
    if (std::ranges::none_of(s.graph.nodes, [&](const GraphNode& n) {
          return n.stage == stage && !is_stage_copy(n);
        }))
      d.error(s.spec.at("model"),
              fmt::format("stage {} (counted from 0), on device {}, has nothing to compute: its "
                          "layers return their input unchanged, as `identity`, `dropout: 0` and a "
                          "`flatten` of flat input do; put another layer on that device, or {}",
                          stage, s.graph.stage_device[static_cast<size_t>(stage)],
                          s.pipeline ? "start the stages at other layers (`cut`)"
                                     : "remove `device` from these"));
}

// Whether the gradients that the spec wants to have measured can be.
void check_measures(const Session& s, Diagnostics& d) {
  const auto refuse = [&](const char* key, std::string_view why) {
    d.error(s.spec.at(key), fmt::format("{} {}", key, why));
  };
  constexpr std::string_view kOnGpu =
      "is measured on CPUs only: leave it out, or train with `device: cpu`";
  if (s.spec.log.grad_norms && s.on_gpu()) refuse("log.grad_norms", kOnGpu);
  if (!s.spec.log.noise_scale) return;
  if (s.on_gpu()) refuse("log.noise_scale", kOnGpu);
  if (s.topology.shards < 2)
    refuse("log.noise_scale",
           "compares the gradients of several shards of a batch, but this run has one: use several "
           "cores or devices, or split batches with `reproducible: {shards: 8}`");
}

// Sets the number of steps, and of epochs that are begun: the run ends by `epochs` or `steps`,
// whichever comes first. The limit 2^40 is 13 days at a million steps per second. Larger numbers
// are mistakes, and products with them might overflow 64 bits.
void count_steps(Session& s, Diagnostics& d) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t of_epoch = s.batches->steps();
  const std::optional<int64_t>&epochs = s.spec.epochs, &steps = s.spec.steps;
  const bool too_many_epochs = !epochs || *epochs > kMost / of_epoch;
  const bool too_many_steps = !steps || *steps > kMost;
  if (too_many_epochs && too_many_steps) {
    d.error(s.spec.at(steps ? "steps" : "epochs"),
            steps ? fmt::format("{} steps are too many: a run may have at most 2^40", *steps)
                  : fmt::format("{} of {} are too many: a run may have at most 2^40 steps",
                                counted(epochs.value_or(1), "epoch"), counted(of_epoch, "step")));
    return;
  }
  s.steps = std::min(too_many_epochs ? kMost : *epochs * of_epoch, too_many_steps ? kMost : *steps);
  s.epochs = (s.steps + of_epoch - 1) / of_epoch;
}

void check_evaluated_set(const Session& s) {
  const std::string_view set = s.evaluated_set();
  if (s.test_loader->input() != s.loader->input())
    fail(Fault::data, "the {} samples are {}, but the training samples are {}", set,
         s.test_loader->input().shape.str(), s.loader->input().shape.str());
  if (s.test_loader->target() != s.loader->target())
    fail(Fault::data, "the {} targets are {} {}, but the training targets are {} {}", set,
         s.test_loader->target().shape.str(), name_of(s.test_loader->target().dtype),
         s.loader->target().shape.str(), name_of(s.loader->target().dtype));
  if (s.test->classes > s.train.classes || s.test->tokens > s.train.tokens)
    fail(Fault::data, "the {} set has {} classes and {} tokens, the training set only {} and {}",
         set, s.test->classes, s.test->tokens, s.train.classes, s.train.tokens);
}

void make_feeders(Session& s, Diagnostics& d) {
  const DataSpec& data = s.spec.data;
  const SimdKernels& simd = simd_kernels();
  const GatherKernels gather{
      .u8 = simd.gather_u8, .u8_table = simd.gather_u8_table, .f32 = simd.gather_f32};
  complain(d, s.spec.at("data.transforms"), [&] {
    s.loader =
        std::make_unique<BatchLoader>(s.train, data.transforms, data.target_transforms, gather);
    if (!s.test) return;
    const bool random = std::ranges::any_of(data.transforms, [](const Choice& t) {
      return static_cast<const TransformType*>(t.what)->random.change != nullptr;
    });
    // Samples of one data set are transformed once.
    if (!s.test_rows.empty() && !random)
      s.test_loader = std::make_unique<BatchLoader>(*s.loader);
    else
      s.test_loader = std::make_unique<BatchLoader>(*s.test, data.transforms,
                                                    data.target_transforms, gather, Split::test);
    check_evaluated_set(s);
  });
}

}  // namespace

std::vector<uint32_t> Session::test_order() const {
  if (!test_rows.empty()) return test_rows;
  std::vector<uint32_t> out(static_cast<size_t>(test->size()));
  std::iota(out.begin(), out.end(), 0U);
  return out;
}

int Session::slot_count() const {
  int64_t out = 1;
  for (int n : slots) out = std::lcm(out, int64_t{n});
  return static_cast<int>(std::min(out, batches->accumulate()));
}

bool Session::last_chunk(const StepRows& rows, size_t micro) const {
  const auto chunks = static_cast<size_t>(pipeline ? pipeline->chunks : 1);
  const auto filled = [](const ShardRows& s) { return s.rows.count() > 0; };
  for (size_t m = micro + 1; m < rows.micro.size() && m % chunks != 0; ++m)
    if (std::ranges::any_of(rows.micro[m], filled)) return false;
  return true;
}

int64_t Session::same_slot_before(int stage, int64_t batch) const {
  const int count = slots[static_cast<size_t>(stage)], round = slot_count();
  const auto slot = [&](int64_t b) { return b % round % count; };
  int64_t before = batch - 1;
  while (before >= 0 && slot(before) != slot(batch)) --before;
  return before;
}

int64_t Session::test_parts_until(int stage, int64_t batch) const {
  const auto& devices = graph.stage_device;
  const int on = devices[static_cast<size_t>(stage)];
  return batch * std::ranges::count(devices, on) +
         std::count(devices.begin(), devices.begin() + stage + 1, on);
}

std::vector<std::string> Session::state_names() const {
  std::vector<std::string> out = optimizer->states(spec.optimizer.settings, cycles_momentum());
  std::erase(out, "");
  if (spec.ema) out.emplace_back(kAverageState);
  return out;
}

int Session::states() const { return static_cast<int>(state_names().size()); }

bool Session::cycles_momentum() const {
  const Choice& choice = spec.schedule.schedule;
  if (!choice) return false;
  const auto* type = static_cast<const ScheduleType*>(choice.what);
  return type->make(choice.settings, 1, 2)->momentum(0).has_value();
}

int64_t Session::parameters() const {
  int64_t n = 0;
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    if (graph.gradients[i] != kNoValue) n += graph[graph.parameters[i]].desc.shape.elements();
  return n;
}

std::unique_ptr<Session> make_session(Spec spec, const SessionQuery& query, Diagnostics& d) {
  auto session = std::make_unique<Session>();
  Session& s = *session;
  s.spec = std::move(spec);
  if (const auto at = s.spec.locations.find("initial_weights"); at != s.spec.locations.end())
    s.initial_weights_location =
        fmt::format("{}:{}:{}", at->second.file->path, at->second.line, at->second.column);
  s.loss = static_cast<const LossType*>(s.spec.loss.what);
  s.optimizer = static_cast<const OptimizerType*>(s.spec.optimizer.what);
  check_schedule(s.spec, d);
  check_parameter_settings(s.spec, *s.optimizer, d);
  std::optional<int64_t>& devices = s.spec.devices.count;
  complain(d, s.spec.at("devices"), [&] { devices = devices_asked(s.spec.parallel, devices); });
  choose_device(s, query);
  choose_precision(s);
  place(s, query, d);
  if (d.ok()) place_on_gpus(s, query, d);
  if (s.spec.random == "torch" && (s.mode->name != "single" || s.topology.devices_per_replica > 1))
    d.error(s.spec.at("random"),
            "`random: torch` needs `parallel: single` on one device; without it, dropout masks are "
            "the same in every mode");
  check_measures(s, d);
  if (!d.ok()) return nullptr;
  load_data(s, query, d);
  if (d.ok()) make_feeders(s, d);
  if (d.ok()) partition_batches(s, d);
  if (d.ok()) complain(d, s.spec.at("model"), [&] { make_programs(s, d); });
  if (d.ok()) s.metrics = metrics_of(s, d);
  if (d.ok()) s.parameter_groups = parameter_groups(s, d);
  if (d.ok()) check_batch_norm(s, d);
  if (d.ok()) check_placement(s, d);
  if (!d.ok()) return nullptr;
  if (!s.test_programs.empty())
    s.test_sync_points = s.test_programs.begin()->second.graph.sync_points(Part::forward);
  s.plan = make_plan(s);
  if (const std::string reason = beyond_limit(s); !reason.empty()) {
    d.error(s.spec.at("memory_limit"), reason);
    return nullptr;
  }
  count_steps(s, d);
  complain(d, s.spec.at("model"), [&] { (void)Buffers::bytes(buffer_sizes(s)); });
  if (!d.ok()) return nullptr;
  return session;
}

}  // namespace dpt
