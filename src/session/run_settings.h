// RunSettings: what the spec asks for, with the registry entries that it names. Depends on nothing
// but the spec.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layers/loss.h"
#include "optim/optimizer.h"
#include "parallel/mode.h"
#include "spec/spec.h"

namespace dpt {

// The state's name in checkpoints: "lin1.weight.ema".
inline constexpr std::string_view kAverageState = "ema";

struct RunSettings {
  Spec spec;  // spec.devices.count also has the count of a mode's own key `devices`
  // "spec.yaml:7:18" if the spec gives initial weights; else empty
  std::string initial_weights_location;
  const ModeType* mode = nullptr;
  const LossType* loss = nullptr;
  const OptimizerType* optimizer = nullptr;

  // Names of the state buffers: the optimizer's states, then, with `ema`, that of the averages.
  std::vector<std::string> state_names() const;
  int states() const;  // number of state buffers
  // Whether weights are averaged, by `ema` or by the optimizer, and evaluations and the saved model
  // use the averages.
  bool averages() const;
  // The state buffer of the averaged weights. REQUIRES: averages().
  int average_state() const;
  // Whether gradients are measured in the step with this number, from 0.
  bool measures() const { return spec.log.grad_norms || spec.log.noise_scale; }
  bool measures(uint64_t step) const {
    return measures() && (step + 1) % static_cast<uint64_t>(spec.log.every) == 0;
  }
  bool cycles_momentum() const;  // the schedule sets the optimizer's momentum
};

// Reports contradicting settings to `d`. REQUIRES: mode, loss and optimizer of the spec are entries
// of registries().
RunSettings make_settings(Spec spec, Diagnostics& d);

}  // namespace dpt
