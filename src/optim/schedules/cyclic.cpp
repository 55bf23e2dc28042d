// cyclic: raises the learning rate from base_lr to max_lr and lowers it again, cycle by cycle;
// momentum changes in the opposite direction. Same as PyTorch's CyclicLR (Smith, 2017). The
// optimizer's learning rate is not used.
#include <cmath>
#include <optional>

#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct Cyclic {
  static constexpr Usage kUsage{
      "torch.optim.lr_scheduler.CyclicLR",
      "schedule: {cyclic: {base_lr: 0.001, max_lr: 0.1}}\n"
      "schedule: {cyclic: {base_lr: 0.001, max_lr: 0.1, step_size_up: 500, step_size_down: 1500,\n"
      "    mode: exp_range, gamma: 0.9999, cycle_momentum: true, base_momentum: 0.8,\n"
      "    max_momentum: 0.95}}"};

  double base_lr = 0, max_lr = 0;
  int64_t step_size_up = 2000;
  std::optional<int64_t> step_size_down;
  std::string mode = "triangular";
  double gamma = 1;
  bool cycle_momentum = true;
  double base_momentum = 0.8, max_momentum = 0.9;

  static KeyTable<Cyclic> keys() {
    using C = Cyclic;
    return KeyTable<C>()
        .required("base_lr", &C::base_lr, "learning rate at the start of each cycle", kNotNegative)
        .required("max_lr", &C::max_lr, "largest learning rate of the first cycle", kNotNegative)
        .optional("step_size_up", &C::step_size_up,
                  "number of intervals in which the learning rate rises", kPositive)
        .optional("step_size_down", &C::step_size_down,
                  "number of intervals in which it falls; none: step_size_up", kNotNegative)
        .choice("mode", &C::mode, {"triangular", "triangular2", "exp_range"},
                "what becomes of the height of cycles: it stays, halves with each cycle, or is "
                "multiplied by gamma in each interval")
        .optional("gamma", &C::gamma, "factor of the height in each interval, for exp_range",
                  kNotNegative)
        .optional("cycle_momentum", &C::cycle_momentum,
                  "whether momentum (Adam: the first beta) moves opposite to the learning rate")
        .optional("base_momentum", &C::base_momentum,
                  "momentum at the largest learning rate of the first cycle", kBelowOne)
        .optional("max_momentum", &C::max_momentum, "momentum at the start of each cycle",
                  kBelowOne);
  }

  // The share of max_lr - base_lr that is added to base_lr in interval k, in the order of
  // PyTorch's operations, since roundings decide the side of the peak.
  double height(int64_t k) const {
    const auto up = static_cast<double>(step_size_up);
    const double total = up + static_cast<double>(step_size_down.value_or(step_size_up));
    const double ratio = up / total, cycles = static_cast<double>(k) / total;
    const double cycle = std::floor(1 + cycles);
    const double x = 1 + cycles - cycle;
    const double triangle = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
    if (mode == "triangular2") return triangle / std::pow(2, cycle - 1);
    if (mode == "exp_range") return triangle * std::pow(gamma, static_cast<double>(k));
    return triangle;
  }

  double lr(double, int64_t k, int64_t) const { return base_lr + (max_lr - base_lr) * height(k); }

  std::optional<double> momentum(int64_t k, int64_t) const {
    if (!cycle_momentum) return {};
    return max_momentum - (max_momentum - base_momentum) * height(k);
  }
};

}  // namespace

ScheduleType cyclic() {
  ScheduleType type = closed_form<Cyclic>(
      "cyclic", "Raises and lowers the learning rate between two limits (Smith 2017).");
  type.interval = "step";
  type.own_rate = true;
  return type;
}

}  // namespace dpt::schedules
