// rprop: resilient backpropagation (Riedmiller and Braun, 1993), as torch.optim.Rprop. Each weight
// has a step size, which grows while its gradient keeps its sign. Only signs of gradients count.
#include "optim/optimizers/optimizer_type.h"

namespace dpt::optimizers {
namespace {

struct Rprop {
  static constexpr Usage kUsage{
      "torch.optim.Rprop",
      "optimizer: {rprop: 0.01}\n"
      "optimizer: {rprop: {lr: 0.01, etas: [0.5, 1.1], step_sizes: [1e-5, 1], maximize: false}}"};

  double lr = 1e-2;
  std::vector<double> etas = {0.5, 1.2};
  std::vector<double> step_sizes = {1e-6, 50};
  bool maximize = false;

  static KeyTable<Rprop> keys() {
    using S = Rprop;
    return KeyTable<Rprop>()
        .optional("lr", &S::lr,
                  "size of the first step; schedules have no effect on the sizes of later steps",
                  kNotNegative)
        .optional("etas", &S::etas,
                  "factors of a weight's step size: the first one where its gradient's sign has "
                  "changed, the second one where it has not")
        .optional("step_sizes", &S::step_sizes, "smallest and largest step size", kNotNegative)
        .optional("maximize", &S::maximize,
                  "whether to maximize the loss instead of minimizing it");
  }

  static void check(const Rprop& s, const Owner& owner, Diagnostics& d) {
    if (s.etas.size() != 2 || !(0 < s.etas[0] && s.etas[0] < 1 && 1 < s.etas[1]))
      d.error(owner.at("etas"),
              "'etas' must be a number between 0 and 1 and one above 1, as in [0.5, 1.2]");
    if (s.step_sizes.size() != 2 || s.step_sizes[0] > s.step_sizes[1])
      d.error(owner.at("step_sizes"),
              "'step_sizes' must be a smallest and a largest size, as in [1e-6, 50]");
  }

  std::vector<std::string> states(bool) const { return {"prev", "step_size"}; }

  formula::Rprop<double> step(int64_t t, double rate, const Momenta&) const {
    return {.lr = rate,
            .etaminus = etas[0],
            .etaplus = etas[1],
            .step_size_min = step_sizes[0],
            .step_size_max = step_sizes[1],
            .maximize = maximize,
            .first_step = t == 1};
  }
};

}  // namespace

OptimizerType rprop() {
  return optimizer_type<Rprop>(
      "rprop",
      "Rprop (Riedmiller & Braun 1993): a step size per weight, from the signs of gradients; for "
      "full batches.");
}

}  // namespace dpt::optimizers
