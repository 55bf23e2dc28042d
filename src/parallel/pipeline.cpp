// pipeline: the layers of a replica are placed on several devices, and a batch is computed in
// chunks, so that devices compute different chunks at the same time. Same as PyTorch's retired Pipe
// and the schedules of torch.distributed.pipelining. Replicas of the pipeline share a batch as
// ranks of ddp do.
#include <algorithm>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "parallel/mode.h"
#include "parallel/rewrites.h"

namespace dpt::modes {
namespace {

struct PipelineKeys : ExchangeKeys, GpuExchangeKeys {
  static constexpr Usage kUsage{
      "torch.distributed.pipelining",
      "parallel: {pipeline: {stages: 2, chunks: 4}}\n"
      "parallel: {pipeline: {stages: 2, chunks: 8, schedule: interleaved_1f1b, stages_a_device: "
      "2,\n"
      "    checkpoint: except_last, balance: memory, deferred_batch_norm: true, data_parallel: 2,\n"
      "    processes: true, timeout: 120, shard: optimizer, compress: fp16, backend: nccl,\n"
      "    bucket_cap_mb: 10}}\n"
      "parallel: {pipeline: {stages: 2, cut: [layer3]}}"};

  int64_t stages = 2, chunks = 1, data_parallel = 1, stages_a_device = 2;
  std::string schedule = "1f1b", checkpoint = "never", balance = "flops";
  std::vector<std::string> cut;
  bool deferred_batch_norm = false, processes = false;
  std::optional<double> timeout;

  static KeyTable<PipelineKeys> keys() {
    constexpr Range kFew{.text = "must be between 1 and 1024", .low = 1, .high = 1024};
    KeyTable<PipelineKeys> table;
    table
        .optional("stages", &PipelineKeys::stages, "number of devices that hold a replica's layers",
                  kFew)
        .optional("chunks", &PipelineKeys::chunks, "number of parts (micro-batches) of a batch",
                  kFew)
        .choice("schedule", &PipelineKeys::schedule, {"gpipe", "1f1b", "interleaved_1f1b"},
                "order of the chunks' forward and backward passes")
        .optional("stages_a_device", &PipelineKeys::stages_a_device,
                  "number of stages per device, for interleaved_1f1b", kFew)
        .choice("checkpoint", &PipelineKeys::checkpoint, {"always", "except_last", "never"},
                "chunks whose activations are recomputed in the backward pass instead of stored")
        .choice("balance", &PipelineKeys::balance, {"flops", "memory"},
                "what to balance between stages: operations or memory")
        .optional("cut", &PipelineKeys::cut,
                  "names of the layers that begin the second stage, the third, ...; by default "
                  "balanced automatically")
        .optional("deferred_batch_norm", &PipelineKeys::deferred_batch_norm,
                  "whether batch norm's running statistics are updated once per batch instead of "
                  "once per chunk; each chunk is still normalized by its own statistics")
        .optional("data_parallel", &PipelineKeys::data_parallel,
                  "number of replicas of the pipeline, each in processes of its own", kFew)
        .optional("processes", &PipelineKeys::processes,
                  "whether each device is a process; false: a thread")
        .optional(
            "timeout", &PipelineKeys::timeout,
            "seconds without a heartbeat after which a process counts as lost (60), as in ddp",
            kPositive);
    ExchangeKeys::add(table);
    GpuExchangeKeys::add(table);
    return table;
  }

  static void check(const PipelineKeys& s, const Owner& owner, Diagnostics& d) {
    const bool interleaved = s.schedule == "interleaved_1f1b";
    if (owner.given("stages_a_device") && !interleaved)
      d.error(owner.at("stages_a_device"),
              "'stages_a_device' is for `schedule: interleaved_1f1b`; leave one of the two out");
    if (interleaved && s.chunks % s.stages != 0)
      d.error(owner.given("chunks") ? owner.at("chunks") : owner.where,
              fmt::format("interleaved_1f1b runs chunks in groups of {}, one per device, so "
                          "`chunks` must be a multiple of {}",
                          s.stages, s.stages));
    for (const std::string_view key : {"shard", "compress", "backend", "bucket_cap_mb"})
      if (owner.given(key) && s.data_parallel == 1 && !(key == "backend" && s.processes))
        d.error(owner.at(key),
                fmt::format("'{}' controls how replicas exchange data, but there is only one; "
                            "write `data_parallel: 2`, or leave the key out",
                            key));
    const int64_t all = s.stages * (interleaved ? s.stages_a_device : 1);
    if (owner.given("cut") && std::ssize(s.cut) != all - 1)
      d.error(
          owner.at("cut"),
          fmt::format("{} stages need {} in 'cut', one for each stage after the first; it has {}",
                      all, counted(all - 1, "layer"), s.cut.size()));
  }
};

Topology topology(const std::any& settings, const ModeQuery& query) {
  const auto& s = std::any_cast<const PipelineKeys&>(settings);
  if (query.devices_per_replica > 1)
    fail(Fault::spec,
         "a pipeline places layers on devices itself; remove `device` from the layers and name the "
         "first layer of each later stage in `parallel: {{pipeline: {{cut: [...]}}}}`");
  const int stages = static_cast<int>(s.stages), replicas = static_cast<int>(s.data_parallel);
  ModeQuery q = query;
  q.devices_per_replica = stages;
  if (q.devices && *q.devices != stages * replicas)
    fail(Fault::spec,
         "`devices` is {}, but `parallel: {{pipeline: ...}}` asks for {} of {}, "
         "which are {}; leave `devices` out, or change `stages` or `data_parallel`",
         *q.devices, counted(replicas, "replica"), counted(stages, "stage"),
         counted(stages * replicas, "device"));
  q.devices = stages * replicas;
  const int all = stages * replicas;
  const bool apart = q.world ? *q.world == all && all > replicas : s.processes;
  if (q.world && *q.world != all && *q.world != replicas)
    fail(Fault::spec,
         "{} ranks were started; {} of {} stages take {}, one for each device, or {}, one "
         "for each replica",
         *q.world, counted(replicas, "replica"), stages, all, replicas);
  Topology out = place_workers(q, replicas, replicas > 1);
  out.ranks = apart ? all : replicas;
  out.devices_per_rank = all / out.ranks;
  return out;
}

Plan rewrite(Plan plan, const PlanTarget& target) {
  plan.mode = "pipeline";
  return share_gradients(place_stages(std::move(plan), target), target);
}

std::optional<double> timeout(const std::any& settings) {
  return std::any_cast<const PipelineKeys&>(settings).timeout;
}

Pipeline pipeline_of(const std::any& settings) {
  const auto& s = std::any_cast<const PipelineKeys&>(settings);
  const bool interleaved = s.schedule == "interleaved_1f1b";
  return {.schedule = interleaved             ? ScheduleKind::interleaved
                      : s.schedule == "gpipe" ? ScheduleKind::gpipe
                                              : ScheduleKind::one_f_one_b,
          .chunks = static_cast<int>(s.chunks),
          .stages_a_device = interleaved ? static_cast<int>(s.stages_a_device) : 1,
          .by_memory = s.balance == "memory",
          .cut = s.cut,
          .checkpoint = s.checkpoint == "always"        ? Checkpointing::always
                        : s.checkpoint == "except_last" ? Checkpointing::except_last
                                                        : Checkpointing::never,
          .deferred_batch_norm = s.deferred_batch_norm};
}

Exchange exchange(const std::any& settings) {
  const auto& s = std::any_cast<const PipelineKeys&>(settings);
  Exchange out = s.exchange();
  s.set(out);
  return out;
}

}  // namespace

ModeType pipeline() {
  return {
      registry_entry<PipelineKeys>("pipeline",
                                   "Pipeline parallel: layers on several devices, which compute "
                                   "different chunks of a batch."),
      topology,
      rewrite,
      timeout,
      true,
      pipeline_of,
      exchange};
}

}  // namespace dpt::modes
