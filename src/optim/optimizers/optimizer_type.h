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

// Takes the keys of an optimizer as KeyTable does, and writes them as arguments in PyTorch: the
// first one, and those that differ from their defaults.
template <class Settings>
class TorchArguments {
 public:
  explicit TorchArguments(const Settings& settings) : settings_(settings) {
    call_.expression("model.parameters()");
  }
  template <class M, class C, class... Rule>
  TorchArguments& optional(std::string_view name, M C::*member, std::string_view, Rule...) {
    if (std::exchange(first_, false) || !(settings_.*member == Settings{}.*member))
      call_.key(name, settings_.*member);
    return *this;
  }
  std::string str() const { return call_.str(); }

 private:
  static constexpr std::string_view name() {
    if constexpr (requires { Settings::kTorchName; }) return Settings::kTorchName;
    constexpr std::string_view kClass = Settings::kUsage.torch;  // "torch.optim.SGD"
    return kClass.substr(kClass.find('.') + 1);
  }
  const Settings& settings_;
  PythonCall call_{name()};
  bool first_ = true;
};

// REQUIRES: Settings has kUsage, a double lr, and
//   template <class Table = KeyTable<Settings>> static Table keys(Table table = {}), which adds the
//     optimizer's arguments in PyTorch to a KeyTable or to TorchArguments, lr first, or
//     static KeyTable<Settings> keys(), if programs with this optimizer are not exported;
//   std::vector<std::string> states(bool cycles_momentum) const;
//   step(int64_t t, double lr, const Momenta& momenta) const, returning a formula's scalars.
// Optional: double weight_decay, double initial_state() const, int average_state() const with
// double averages_after() const, static constexpr bool kHasMomentum and kUsesPreviousLr, and the
// std::string_views kTorchName and kTorchClass if kUsage names no class of PyTorch.
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
  if constexpr (requires(const Settings& c) { Settings::keys(TorchArguments<Settings>(c)); })
    type.torch = [](const std::any& s) {
      return Settings::keys(TorchArguments<Settings>(std::any_cast<const Settings&>(s))).str();
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
