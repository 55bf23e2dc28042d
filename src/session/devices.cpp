#include "session/devices.h"

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
  q.world = query.world;
  q.devices_per_replica = devices_of(spec.model);
  return q;
}

// Sets what the mode determines: topology, exchange and pipeline.
void place(Devices& out, const RunSettings& settings, const SessionQuery& query, Diagnostics& d) {
  const Choice& parallel = settings.spec.parallel;
  const ModeType& mode = *settings.mode;
  const ModeQuery q = mode_query(out, settings, query);
  if (mode.pipeline) out.pipeline = mode.pipeline(parallel.settings);
  if (mode.exchange) out.exchange = mode.exchange(parallel.settings);
  if (query.world && *query.world > 1 && !mode.processes)
    d.error(parallel.where,
            fmt::format("{} ranks were started, but parallel mode '{}' is one process; write "
                        "`parallel: ddp`, or start one",
                        *query.world, mode.name));
  report_spec_error(d, parallel.where, [&] { out.topology = mode.topology(parallel.settings, q); });
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
