#include "oracles/random_optimizer.h"

namespace dpt {

std::string random_optimizer(RandomNumbers& random) {
  const std::string decay = random.maybe(40, ", weight_decay: 0.01");
  switch (random.between(0, 12)) {
    case 0:
      return random.chance(50)
                 ? "{sgd: {lr: 0.001, momentum: 0.9, nesterov: true" + decay + "}}"
                 : fmt::format("{{sgd: {{lr: 0.002, momentum: {}, dampening: 0.1{}}}}}",
                               random.part(0, 90), decay);
    case 1:
      return fmt::format("{{adam: {{lr: 0.01, amsgrad: {}{}}}}}", random.chance(30), decay);
    case 2:
      return fmt::format("{{adam_w: {{lr: 0.01, betas: [0.8, 0.99]{}}}}}", decay);
    case 3:
      return fmt::format("{{rms_prop: {{lr: 0.002, centered: {}, momentum: {}{}}}}}",
                         random.chance(40), random.part(0, 50), decay);
    case 4:
      return "{adagrad: {lr: 0.02, lr_decay: 0.01" + decay + "}}";
    case 5:
      return "{adamax: {lr: 0.01" + decay + "}}";
    case 6:
      return fmt::format("{{n_adam: {{lr: 0.01, decoupled_weight_decay: {}{}}}}}",
                         random.chance(50), decay);
    case 7:
      return fmt::format("{{r_adam: {{lr: 0.01, decoupled_weight_decay: {}{}}}}}",
                         random.chance(50), decay);
    case 8:
      return "{rprop: {lr: 0.001, step_sizes: [1e-5, 0.01]}}";
    case 9:
      return fmt::format("{{asgd: {{lr: 0.005, lambd: 0.01, t0: {}, average: {}{}}}}}",
                         random.between(0, 3), random.chance(50), decay);
    case 10:
      return "{lion: {lr: 0.001" + decay + "}}";
    case 11:
      return "{muon: {lr: 0.01, adam_w: {lr: 0.002}" + decay + "}}";
    default:
      return "{adadelta: {lr: 1" + decay + "}}";
  }
}

}  // namespace dpt
