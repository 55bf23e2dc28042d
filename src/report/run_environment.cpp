#include "report/run_environment.h"

#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/units.h"
#include "base/version.h"
#include "formats/json_text.h"

namespace dpt {

std::string environment_json(const Session& s, const RunIdentity& identity,
                             const std::string& resume) {
  const Topology& topology = s.topology;
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::vector<std::string> entries;
  const auto text = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) entries.push_back(fmt::format("\"{}\": {}", key, json_text(value)));
  };
  const auto number = [&](std::string_view key, int64_t value) {
    entries.push_back(fmt::format("\"{}\": {}", key, value));
  };
  text("version", version());
  text("host", identity.host);
  text("job", identity.job);
  text("run", identity.id);
  entries.push_back(fmt::format("\"started\": {:.3f}", now));
  text("resume", resume);
  text("cpu", cpu_name());
  number("cores", static_cast<int64_t>(usable_cores().size()));
  text("device", s.device);
  text("mode", s.plan.mode);
  number("ranks", topology.ranks);
  number("devices", int64_t{topology.ranks} * topology.devices_per_rank);
  number("workers", topology.total_workers());
  text("precision", s.precision.on() ? text_of(s.precision) : "fp32");
  text("data", s.train.description);
  number("samples", s.train_samples());
  if (s.test) number(fmt::format("{}_samples", s.evaluated_set()), s.test_samples());
  number("batch_size", s.global_batch);
  number("parameters", s.parameters());
  number("seed", s.spec.seed);
  number("epochs", s.epochs);
  number("steps", s.steps);
  number("steps_of_epoch", s.batches->steps());
  return fmt::format("{{{}}}\n", fmt::join(entries, ",\n "));
}

std::optional<MetricsRecord> read_environment(const std::string& run) {
  try {
    return parse_record(read_file(run + "/env.json", kMiB));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace dpt
