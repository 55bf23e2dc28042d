#include "session/devices.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/machine.h"
#include "layers/model.h"
#include "session/gpus.h"
#include "session/report_spec_error.h"

namespace dpt {
namespace {

constexpr int kGpusOfPlans = 2;  // for a plan, if the number of GPUs is unknown

ModeQuery mode_query(const Devices& devices, const RunSettings& settings,
                     const SessionQuery& query) {
  const Spec& spec = settings.spec;
  const ModeType& mode = *settings.mode;
  ModeQuery q;
  if (spec.devices.count) q.devices = static_cast<int>(*spec.devices.count);
  if (spec.devices.cores) q.cores = static_cast<int>(*spec.devices.cores);
  if (spec.reproducible_shards) q.shards = static_cast<int>(*spec.reproducible_shards);
  q.machine_cores = static_cast<int>(usable_cores().size());
  q.gpus = devices.on_gpu();
  if (devices.on_gpu()) {
    q.cores = 1;  // a thread that controls the GPU
    if (!q.devices && !query.world && mode.name != "single" && !mode.pipeline)
      q.devices = devices.gpus.count > 0 ? devices.gpus.count : kGpusOfPlans;
  }
  if (query.hosts) q.hosts = static_cast<int>(query.hosts->first_ranks.size());
  if (query.hosts) q.machine_cores = query.hosts->cores_per_rank * query.world.value_or(1);
  q.world = query.world;
  q.devices_per_replica = devices_of(spec.model);
  return q;
}

// Whether the mode can span the hosts of the query. Reports to `d` what it cannot do there.
void check_hosts(const Devices& devices, const RunSettings& settings, Diagnostics& d) {
  const Spec& spec = settings.spec;
  const Topology& topology = devices.topology;
  const auto refuse = [&](Span where, std::string_view why) { d.error(where, std::string(why)); };
  if (!settings.mode->processes)
    refuse(spec.parallel.where,
           fmt::format("parallel mode '{}' is one process on one machine, whose threads share "
                       "memory; on several machines write `parallel: ddp`",
                       settings.mode->name));
  if (topology.replicas_own_weights())
    refuse(spec.parallel.where,
           "replicas that average their weights cannot span several machines yet; write "
           "`parallel: ddp`");
  if (devices.stages_are_processes() && !devices.on_gpu())
    refuse(spec.parallel.where,
           "on several machines the stages of a replica must be threads of one rank: leave "
           "`processes` out, and start one rank for each replica");
  if (spec.sync_batch_norm && topology.devices_per_replica > 1 && !devices.on_gpu())
    refuse(spec.at("sync_batch_norm"),
           "sums over several machines only if a replica has one device; leave it out, or put all "
           "layers on one device");
  if (spec.reproducible_gradients == "fused")
    refuse(spec.at("reproducible.gradients"),
           "fused gradients are computed from the activations of all shards, which other machines "
           "do not have; write `gradients: stored`");
  if (spec.log.grad_norms)
    refuse(spec.at("log.grad_norms"), "is measured on one machine only; leave it out");
  if (spec.log.noise_scale)
    refuse(spec.at("log.noise_scale"), "is measured on one machine only; leave it out");
  if (topology.workers_of_host(topology.host).count() == 0)
    refuse(spec.parallel.where, "a machine has no rank");
}

// Sets what the mode determines: topology, exchange and pipeline.
void place(Devices& out, const RunSettings& settings, const SessionQuery& query, Diagnostics& d) {
  const Choice& parallel = settings.spec.parallel;
  const ModeType& mode = *settings.mode;
  const ModeQuery q = mode_query(out, settings, query);
  if (mode.pipeline) out.pipeline = mode.pipeline(parallel.settings);
  if (mode.exchange) out.exchange = mode.exchange(parallel.settings);
  if (query.world && *query.world > 1 && !mode.processes && !query.hosts)
    d.error(parallel.where,
            fmt::format("{} ranks were started, but parallel mode '{}' is one process; write "
                        "`parallel: ddp`, or start one",
                        *query.world, mode.name));
  report_spec_error(d, parallel.where, [&] { out.topology = mode.topology(parallel.settings, q); });
  if (!query.hosts || query.hosts->first_ranks.size() < 2) return;
  out.topology.first_ranks = query.hosts->first_ranks;
  out.topology.host = query.hosts->host;
  check_hosts(out, settings, d);
}

}  // namespace

Devices make_devices(const RunSettings& settings, const SessionQuery& query, Diagnostics& d) {
  Devices out;
  out.graphs = settings.spec.graphs;
  choose_device(out, settings, query);
  place(out, settings, query, d);
  if (d.ok()) place_on_gpus(out, settings.spec, query, d);
  return out;
}

}  // namespace dpt
