// Turns the settings struct of a file in optim/optimizers/ into a registry entry.
#pragma once

#include <any>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/python_call.h"
#include "graph/optimizer_step.h"
#include "optim/optimizer.h"

namespace dpt {

// The optimizer as a call in PyTorch, with lr and what differs from its defaults.
template <class Settings>
std::string torch_optimizer(const Settings& settings) {
  std::string_view callee = Settings::kUsage.callee();
  if constexpr (requires { Settings::kTorchName; }) callee = Settings::kTorchName;
  std::vector<PythonArgument> arguments = Settings::keys().arguments(settings);
  arguments[0].usual = false;
  return PythonCall(callee).expression("model.parameters()").keys(arguments).str();
}

// REQUIRES: Settings has kUsage, a double lr, and
//   static KeyTable<Settings> keys(), the optimizer's arguments in PyTorch, lr first;
//   std::vector<std::string> states(bool cycles_momentum) const;
//   step(int64_t t, double lr, const Momenta& momenta) const, returning a formula's scalars.
// Optional: double weight_decay, double initial_state() const, int average_state() const with
// double averages_after() const, static constexpr bool kHasMomentum and kUsesPreviousLr,
// kNotExported if programs for PyTorch cannot have it, and the std::string_views kTorchName and
// kTorchClass if kUsage names no class of PyTorch.
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
  type.step = [](const std::any& s, int64_t t, double lr, const Momenta& momenta) -> OptimizerStep {
    return std::any_cast<const Settings&>(s).step(t, lr, momenta);
  };
  if constexpr (!requires { Settings::kNotExported; })
    type.torch = [](const std::any& s) {
      return torch_optimizer(std::any_cast<const Settings&>(s));
    };
  type.average_state = [](const std::any& s) {
    if constexpr (requires(const Settings& c) { c.average_state(); })
      return std::any_cast<const Settings&>(s).average_state();
    else
      return -1;
  };
  type.averages_after = [](const std::any& s) {
    if constexpr (requires(const Settings& c) { c.averages_after(); })
      return std::any_cast<const Settings&>(s).averages_after();
    else
      return 0.0;
  };
  if constexpr (requires { Settings::kTorchClass; }) type.torch_class = Settings::kTorchClass;
  if constexpr (requires { Settings::kUsesPreviousLr; })
    type.uses_previous_lr = Settings::kUsesPreviousLr;
  if constexpr (requires { Settings::kHasMomentum; }) type.has_momentum = Settings::kHasMomentum;
  return type;
}

}  // namespace dpt
