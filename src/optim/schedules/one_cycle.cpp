// one_cycle: raises the learning rate to max_lr and lowers it far below the start over the whole
// run; momentum changes in the opposite direction. Same as PyTorch's OneCycleLR (Smith and Topin,
// 2018). The optimizer's learning rate is not used.
#include <cmath>
#include <numbers>
#include <optional>
#include <span>

#include "formats/python_call.h"
#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct OneCycle {
  static constexpr Usage kUsage{
      "torch.optim.lr_scheduler.OneCycleLR",
      "schedule: {one_cycle: 0.1}\n"
      "schedule: {one_cycle: [0.1, 0.01]}\n"
      "schedule: {one_cycle: {max_lr: 0.1, pct_start: 0.3, anneal_strategy: linear,\n"
      "    cycle_momentum: true, base_momentum: 0.85, max_momentum: 0.95, div_factor: 25,\n"
      "    final_div_factor: 10000, three_phase: true}}"};

  std::vector<double> max_lr;
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;

  static KeyTable<OneCycle> keys() {
    using C = OneCycle;
    return KeyTable<C>()
        .required(
            "max_lr", &C::max_lr,
            "largest learning rate: one number, or one for parameters in no group and one for "
            "each of parameter_groups",
            kPositive)
        .optional("pct_start", &C::pct_start, "share of the run in which the learning rate rises",
                  kProbability)
        .choice("anneal_strategy", &C::anneal_strategy, {"cos", "linear"}, "shape of each phase")
        .optional("cycle_momentum", &C::cycle_momentum,
                  "whether momentum (Adam: the first beta) moves opposite to the learning rate")
        .optional("base_momentum", &C::base_momentum, "momentum at the largest learning rate",
                  kBelowOne)
        .optional("max_momentum", &C::max_momentum, "momentum at the start and at the end",
                  kBelowOne)
        .optional("div_factor", &C::div_factor, "max_lr divided by the initial learning rate",
                  kPositive)
        .optional("final_div_factor", &C::final_div_factor,
                  "initial learning rate divided by the final one", kPositive)
        .optional("three_phase", &C::three_phase,
                  "whether a second phase mirrors the first one before the final decay");
  }

  // The end of a phase: its interval, which need not be whole, and the values there.
  struct Phase {
    double end, lr, momentum;
  };

  double anneal(double from, double to, double part) const {
    if (anneal_strategy == "linear") return (to - from) * part + from;
    return to + (from - to) / 2 * (std::cos(std::numbers::pi * part) + 1);
  }

  static void check(const OneCycle& c, const Owner& owner, Diagnostics& d) {
    if (c.max_lr.empty()) d.error(owner.at("max_lr"), "'max_lr' must have at least one number");
  }

  // Interpolates a field of Phase at interval k. most: the largest learning rate.
  double at(double most, int64_t k, int64_t total, double Phase::*value) const {
    const double first = most / div_factor, last = first / final_div_factor;
    const double rise = pct_start * static_cast<double>(total);
    const Phase start{0, first, max_momentum};
    const Phase top{rise - 1, most, base_momentum};
    const Phase back{2 * rise - 2, first, max_momentum};
    const Phase done{static_cast<double>(total) - 1, last, max_momentum};
    const Phase two[] = {start, top, done}, three[] = {start, top, back, done};
    const std::span<const Phase> phases = three_phase ? std::span<const Phase>(three) : two;
    const double now = std::min(static_cast<double>(k), done.end);
    size_t i = 1;
    while (i + 1 < phases.size() && now > phases[i].end) ++i;
    const double length = phases[i].end - phases[i - 1].end;
    // A phase of length 0, for which PyTorch divides by 0, is at its end.
    const double part = length == 0 ? 1 : (now - phases[i - 1].end) / length;
    return anneal(phases[i - 1].*value, phases[i].*value, part);
  }

  double lr(double base, int64_t k, int64_t total) const {
    return at(max_lr.size() == 1 ? max_lr[0] : base, k, total, &Phase::lr);
  }

  std::optional<double> momentum(int64_t k, int64_t total) const {
    if (!cycle_momentum) return {};
    return at(max_lr[0], k, total, &Phase::momentum);
  }

  std::string torch(int64_t total) const {
    PythonCall call("lr_scheduler.OneCycleLR");
    call.expression("optimizer");
    if (max_lr.size() == 1)
      call.key("max_lr", max_lr[0]);
    else  // the base learning rates, which are those of the optimizer's groups
      call.expression("max_lr", "[group[\"lr\"] for group in optimizer.param_groups]");
    return call.key("total_steps", total).keys(keys().arguments(*this), 1).str();
  }
};

}  // namespace

ScheduleType one_cycle() {
  ScheduleType type = closed_form<OneCycle>(
      "one_cycle",
      "Raises the learning rate to max_lr and lowers it again over the run (Smith & "
      "Topin 2019).");
  type.interval = "step";
  type.own_rate = true;
  type.rates = [](const std::any& settings) {
    return std::any_cast<const OneCycle&>(settings).max_lr;
  };
  return type;
}

}  // namespace dpt::schedules
