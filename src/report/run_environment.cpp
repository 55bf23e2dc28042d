#include "report/run_environment.h"

#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/units.h"
#include "base/version.h"
#include "formats/json.h"

namespace dpt {

std::string environment_json(const Session& s, const RunIdentity& identity,
                             const std::string& resume) {
  const Topology& topology = s.devices.topology;
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Json out = Json::object();
  const auto add = [&](std::string key, Json value) {
    out.add(std::move(key), out.size() == 0 ? std::move(value) : std::move(value).on_line(1));
  };
  const auto text = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) add(std::string(key), value);
  };
  text("version", version());
  text("host", identity.host);
  text("job", identity.job);
  text("run", identity.id);
  add("started", Json::decimals(now, 3));
  text("resume", resume);
  text("cpu", cpu_name());
  add("cores", static_cast<int64_t>(usable_cores().size()));
  text("device", s.devices.device);
  text("mode", s.plan.mode);
  add("ranks", topology.ranks);
  add("hosts", topology.hosts());
  add("devices", int64_t{topology.ranks} * topology.devices_per_rank);
  add("workers", topology.total_workers());
  text("precision", s.precision.policy.on() ? text_of(s.precision.policy) : "fp32");
  text("data", s.data.train.description);
  add("samples", s.data.train_samples());
  if (s.data.test) add(fmt::format("{}_samples", s.data.evaluated_set()), s.data.test_samples());
  add("batch_size", s.batches.global_batch);
  add("parameters", s.model.parameters());
  add("seed", s.settings.spec.seed);
  add("epochs", s.length.epochs);
  add("steps", s.length.steps);
  add("steps_of_epoch", s.batches.train->steps());
  return out.dump() + "\n";
}

}  // namespace dpt
