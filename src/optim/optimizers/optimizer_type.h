// Turns the settings struct of a file in optim/optimizers/ into a registry entry.
#pragma once

#include <any>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optim/optimizer.h"

namespace dpt {

// REQUIRES: Settings has keys(), a double lr, and
//   std::vector<std::string> states(bool cycles_momentum) const;
//   step(int64_t t, double lr, std::optional<double> momentum) const, returning a formula's
//   scalars; std::string torch() const.
// Optional: double weight_decay, double initial_state() const, and static constexpr bool
// kHasMomentum.
template <class Settings>
OptimizerType optimizer_type(std::string_view name, std::string_view summary) {
  OptimizerType type{registry_entry<Settings>(name, summary)};
  type.states = [](const std::any& s, bool cycles_momentum) {
    return std::any_cast<const Settings&>(s).states(cycles_momentum);
  };
  type.initial_state = [](const std::any& s) {
    if constexpr (requires(const Settings& c) { c.initial_state(); })
      return std::any_cast<const Settings&>(s).initial_state();
    else
      return 0.0;
  };
  type.lr = [](const std::any& s) { return std::any_cast<const Settings&>(s).lr; };
  type.weight_decay = [](const std::any& s) -> std::optional<double> {
    if constexpr (requires(const Settings& c) { c.weight_decay; })
      return std::any_cast<const Settings&>(s).weight_decay;
    else
      return {};
  };
  type.with = [](const std::any& s, double lr, std::optional<double> weight_decay) -> std::any {
    auto out = std::any_cast<const Settings&>(s);
    out.lr = lr;
    if constexpr (requires { out.weight_decay; })
      out.weight_decay = weight_decay.value_or(out.weight_decay);
    return out;
  };
  type.step = [](const std::any& s, int64_t t, double lr,
                 std::optional<double> momentum) -> OptimizerStep {
    return std::any_cast<const Settings&>(s).step(t, lr, momentum);
  };
  type.torch = [](const std::any& s) { return std::any_cast<const Settings&>(s).torch(); };
  if constexpr (requires { Settings::kHasMomentum; }) type.has_momentum = Settings::kHasMomentum;
  return type;
}

}  // namespace dpt
