#include "session/run_settings.h"

#include <utility>

#include <fmt/format.h>

#include "optim/schedule.h"
#include "session/parameter_groups.h"
#include "session/report_spec_error.h"

namespace dpt {

std::vector<std::string> RunSettings::state_names() const {
  std::vector<std::string> out = optimizer->states(spec.optimizer.settings, cycles_momentum());
  std::erase(out, "");
  if (spec.ema) out.emplace_back(kAverageState);
  return out;
}

int RunSettings::states() const { return static_cast<int>(state_names().size()); }

bool RunSettings::averages() const {
  return spec.ema || optimizer->average_state(spec.optimizer.settings) >= 0;
}

int RunSettings::average_state() const {
  return spec.ema ? states() - 1 : optimizer->average_state(spec.optimizer.settings);
}

bool RunSettings::cycles_momentum() const {
  const Choice& choice = spec.schedule.schedule;
  if (!choice) return false;
  const auto* type = static_cast<const ScheduleType*>(choice.what);
  return type->make(choice.settings, 1, 2)->momentum(0).has_value();
}

RunSettings make_settings(Spec given, Diagnostics& d) {
  RunSettings out;
  out.spec = std::move(given);
  Spec& spec = out.spec;
  if (const auto at = spec.locations.find("initial_weights"); at != spec.locations.end())
    out.initial_weights_location =
        fmt::format("{}:{}:{}", at->second.file->path, at->second.line, at->second.column);
  out.mode = static_cast<const ModeType*>(spec.parallel.what);
  out.loss = static_cast<const LossType*>(spec.loss.what);
  out.optimizer = static_cast<const OptimizerType*>(spec.optimizer.what);
  check_schedule(spec, d);
  check_parameter_settings(spec, *out.optimizer, d);
  if (spec.ema && out.optimizer->average_state(spec.optimizer.settings) >= 0)
    d.error(spec.at("ema"), fmt::format("evaluations can use one average of the weights, that of "
                                        "`ema` or that of optimizer '{}'; leave `ema` out, or set "
                                        "the optimizer's `average` to false",
                                        out.optimizer->name));
  std::optional<int64_t>& devices = spec.devices.count;
  report_spec_error(d, spec.at("devices"),
                    [&] { devices = devices_asked(spec.parallel, devices); });
  return out;
}

}  // namespace dpt
