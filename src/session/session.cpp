#include "session/session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "layers/model.h"
#include "session/label_check.h"
#include "session/load_data.h"
#include "session/make_plan.h"
#include "session/memory.h"
#include "session/own_weights.h"
#include "session/programs.h"
#include "session/report_spec_error.h"

namespace dpt {
namespace {

// Whether a replica has exactly one sample in some micro-batch of `batch`.
bool leaves_one_sample(const Spec& spec, const Devices& devices, const BatchPartitioner& batches,
                       int64_t batch) {
  StepRows rows;
  batches.step(batch, rows);
  for (const auto& micro : rows.micro)
    for (int shard = 0; shard < devices.topology.shards; ++shard) {
      const Rows replica = devices.topology.replica_of(shard, spec.sync_batch_norm);
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
int64_t batch_of_one_sample(const Spec& spec, const Devices& devices,
                            const BatchPartitioner& batches) {
  const int64_t steps = batches.steps();
  for (const int64_t batch : {int64_t{0}, std::max<int64_t>(0, steps - 2), steps - 1})
    if (leaves_one_sample(spec, devices, batches, batch)) return batch;
  return -1;
}

// A variance needs two values. PyTorch reports this too, but only when it reaches that batch.
void check_batch_norm(const Session& s, Diagnostics& d) {
  const int64_t step = takes_variance_of_samples(s.model.graph)
                           ? batch_of_one_sample(s.settings.spec, s.devices, *s.batches.train)
                           : -1;
  if (step >= 0)
    d.error(s.settings.spec.at("data.batch_size"),
            fmt::format(
                "batch {} of {} leaves a replica with a single sample, which has no variance for "
                "batch norm; change {}{}",
                step + 1, s.batches.train->steps(),
                s.batches.train->accumulate() > 1 ? "batch_size or accumulate" : "batch_size",
                step == 0 ? "" : ", or set `drop_last: true`"));
  if (s.model.test_programs.empty() ||
      !takes_variance_of_samples(s.model.test_programs.begin()->second.graph))
    return;
  if (const int64_t batch = batch_of_one_sample(s.settings.spec, s.devices, *s.batches.test);
      batch >= 0)
    d.error(
        s.settings.spec.at("evaluate.batch_size"),
        fmt::format("batch {} of {} of the {} set leaves a replica with a single sample, which has "
                    "no variance for batch norm; change the batch_size of `evaluate`, or set "
                    "`track_running_stats: true`",
                    batch + 1, s.batches.test->steps(), s.data.evaluated_set()));
}

// Whether the first shard has none of the samples of some micro-batch.
bool leaves_first_shard_empty(const BatchPartitioner& batches, int64_t batch) {
  StepRows rows;
  batches.step(batch, rows);
  return std::ranges::any_of(rows.micro, [](const std::vector<ShardRows>& micro) {
    return micro[0].rows.count() == 0 && std::ranges::any_of(micro, [](const ShardRows& shard) {
             return shard.rows.count() > 0;
           });
  });
}

// Running statistics are updated where the first sample of a micro-batch is. With several hosts,
// the first one has them.
void check_statistics_of_hosts(const Session& s, Diagnostics& d) {
  if (s.devices.topology.hosts() == 1 || s.model.graph.buffers.empty()) return;
  const int64_t steps = s.batches.train->steps();
  for (const int64_t batch : {int64_t{0}, std::max<int64_t>(0, steps - 2), steps - 1})
    if (leaves_first_shard_empty(*s.batches.train, batch))
      return d.error(s.settings.spec.at("data.batch_size"),
                     fmt::format("batch {} of {} has fewer samples than there are shards, so the "
                                 "first machine, which updates the running statistics of batch "
                                 "norm, would have none; use a larger batch_size, fewer shards, "
                                 "or `drop_last: true`",
                                 batch + 1, steps));
}

// Devices must be numbered without gaps, and each stage must compute something.
void check_placement(const Spec& spec, const Devices& devices, const CompiledModel& model,
                     Diagnostics& d) {
  for (int device = 0; device < devices.topology.devices_per_replica; ++device)
    if (std::ranges::find(model.graph.stage_device, device) == model.graph.stage_device.end())
      d.error(
          spec.at("model"),
          fmt::format("device {0} has no layer, but device {1} does; the devices of a replica are "
                      "numbered from 0 without gaps: give a layer `device: {0}`, or lower the "
                      "other numbers",
                      device, devices.topology.devices_per_replica - 1));
  for (int stage = 0; stage < model.graph.stages(); ++stage)
    if (std::ranges::none_of(model.graph.nodes, [&](const GraphNode& n) {
          return n.stage == stage && !is_stage_copy(n);
        }))
      d.error(spec.at("model"),
              fmt::format("stage {} (counted from 0), on device {}, has nothing to compute: its "
                          "layers return their input unchanged, as `identity`, `dropout: 0` and a "
                          "`flatten` of flat input do; put another layer on that device, or {}",
                          stage, model.graph.stage_device[static_cast<size_t>(stage)],
                          devices.pipeline ? "start the stages at other layers (`cut`)"
                                           : "remove `device` from these"));
}

// Whether the gradients that the spec wants to have measured can be.
void check_measures(const Spec& spec, const Devices& devices, Diagnostics& d) {
  const auto refuse = [&](const char* key, std::string_view why) {
    d.error(spec.at(key), fmt::format("{} {}", key, why));
  };
  constexpr std::string_view kOnGpu =
      "is measured on CPUs only: leave it out, or train with `device: cpu`";
  if (spec.log.grad_norms && devices.on_gpu()) refuse("log.grad_norms", kOnGpu);
  if (!spec.log.noise_scale) return;
  if (devices.on_gpu()) refuse("log.noise_scale", kOnGpu);
  if (devices.topology.shards < 2)
    refuse("log.noise_scale",
           "compares the gradients of several shards of a batch, but this run has one: use several "
           "cores or devices, or split batches with `reproducible: {shards: 8}`");
}

// Masks that PyTorch draws come from one generator on one device.
void check_random(const RunSettings& settings, const Devices& devices, Diagnostics& d) {
  if (settings.spec.random == "torch" &&
      (settings.mode->name != "single" || devices.topology.devices_per_replica > 1))
    d.error(settings.spec.at("random"),
            "`random: torch` needs `parallel: single` on one device; without it, dropout masks are "
            "the same in every mode");
}

// Whether the optimizer can update whole matrices here.
void check_matrices(const RunSettings& settings, const Devices& devices, Diagnostics& d) {
  if (!settings.optimizer->of_elements) return;
  const Choice& optimizer = settings.spec.optimizer;
  if (devices.on_gpu())
    d.error(optimizer.where,
            fmt::format("optimizer '{}' trains on CPUs only: write `device: cpu`, or choose "
                        "another optimizer, such as adam_w",
                        optimizer.what->name));
  if (devices.topology.hosts() > 1)
    d.error(optimizer.where,
            fmt::format("optimizer '{}' trains on one machine only: each machine updates parts of "
                        "matrices; choose another optimizer, such as adam_w",
                        optimizer.what->name));
}

// The first of these samples would make the loss infinite.
void check_training_labels(const Session& s) {
  const std::string problem =
      misfitting_labels(s.settings, s.model, s.data.train, "training", s.data.train_rows);
  if (!problem.empty()) fail(Fault::data, "{}", problem);
}

}  // namespace

std::unique_ptr<const Session> make_session(Spec given, const SessionQuery& query, Diagnostics& d) {
  auto session = std::make_unique<Session>();
  Session& s = *session;
  s.settings = make_settings(std::move(given), d);
  const Spec& spec = s.settings.spec;
  s.devices = make_devices(s.settings, query, d);
  s.precision = make_precision(spec, s.devices.on_gpu());
  check_random(s.settings, s.devices, d);
  check_matrices(s.settings, s.devices, d);
  check_measures(s.settings.spec, s.devices, d);
  check_own_weights(s.settings, s.devices, s.precision, d);
  if (!d.ok()) return nullptr;
  s.data = load_data(s.settings, query, d);
  if (d.ok()) s.batches = make_batches(spec, s.devices, s.data, d);
  if (d.ok()) report_spec_error(d, spec.at("model"), [&] { s.model = compile_model(s, d); });
  if (d.ok()) s.metrics = metrics_of(s.settings, s.data, s.batches, s.model, d);
  if (d.ok()) s.parameter_groups = parameter_groups_of(s.settings, s.batches, s.model, d);
  if (d.ok()) check_batch_norm(s, d);
  if (d.ok()) check_statistics_of_hosts(s, d);
  if (d.ok()) check_placement(s.settings.spec, s.devices, s.model, d);
  if (d.ok() && !query.evaluates && query.data_of == nullptr) check_training_labels(s);
  if (!d.ok()) return nullptr;
  s.shares = make_shares(s);
  s.plan = make_plan(s);
  report_spec_error(d, spec.at("model"), [&] { s.layout = make_memory_layout(s); });
  if (const std::string reason = d.ok() ? beyond_limit(s) : ""; !reason.empty()) {
    d.error(spec.at("memory_limit"), reason);
    return nullptr;
  }
  s.length = make_length(spec, s.batches.train->steps(), d);
  report_spec_error(d, spec.at("model"), [&] { (void)Buffers::bytes(s.layout.buffers); });
  if (!d.ok()) return nullptr;
  return session;
}

}  // namespace dpt
