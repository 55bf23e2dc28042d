// reduce_on_plateau: multiplies the learning rate by `factor` if the loss has not improved for
// `patience` values, as PyTorch's ReduceLROnPlateau. The values are the losses of evaluations, or
// of epochs if the spec has no evaluation.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "optim/schedule.h"

namespace dpt::schedules {
namespace {

struct ReduceOnPlateau {
  static constexpr Usage kUsage{
      "torch.optim.lr_scheduler.ReduceLROnPlateau",
      "schedule: reduce_on_plateau\n"
      "schedule: {reduce_on_plateau: {mode: min, factor: 0.5, patience: 3, threshold: 0.001,\n"
      "    threshold_mode: abs, cooldown: 2, min_lr: 1e-5, eps: 1e-8}}"};

  std::string mode = "min";
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";
  int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;

  static KeyTable<ReduceOnPlateau> keys() {
    using C = ReduceOnPlateau;
    return KeyTable<C>()
        .choice("mode", &C::mode, {"min", "max"}, "whether a smaller or a larger value is better")
        .optional("factor", &C::factor, "factor of the learning rate at each decay", kBelowOne)
        .optional(
            "patience", &C::patience,
            "number of evaluations (epochs, without evaluation) without improvement before a decay",
            kNotNegative)
        .optional("threshold", &C::threshold, "smallest change that counts as an improvement",
                  kNotNegative)
        .choice("threshold_mode", &C::threshold_mode, {"rel", "abs"},
                "whether threshold is relative to the best value or an absolute difference")
        .optional("cooldown", &C::cooldown,
                  "number of evaluations (or epochs) after a decay that are not counted",
                  kNotNegative)
        .optional("min_lr", &C::min_lr, "smallest learning rate", kNotNegative)
        .optional("eps", &C::eps, "smallest change of the learning rate that is applied",
                  kNotNegative);
  }

  double worst() const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return mode == "min" ? kInfinity : -kInfinity;
  }

  bool better(double value, double best) const {
    if (mode == "min")
      return value < (threshold_mode == "rel" ? best * (1 - threshold) : best - threshold);
    return value > (threshold_mode == "rel" ? best * (threshold + 1) : best + threshold);
  }
};

class Plateau : public Schedule {
 public:
  Plateau(ReduceOnPlateau settings, double base)
      : settings_(std::move(settings)), base_(base), lr_(base), best_(settings_.worst()) {}

  double lr(int64_t) override { return lr_; }

  void metric(double value) override {
    if (settings_.better(value, best_)) {
      best_ = value;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (cooling_ > 0) {
      --cooling_;
      bad_ = 0;
    }
    if (bad_ <= settings_.patience) return;
    const double next = std::max(lr_ * settings_.factor, settings_.min_lr);
    if (lr_ - next > settings_.eps) lr_ = next;
    cooling_ = settings_.cooldown;
    bad_ = 0;
  }

  std::vector<double> state() const override {
    return {lr_, best_, static_cast<double>(bad_), static_cast<double>(cooling_), base_};
  }
  // If the optimizer's learning rate has changed, the decays so far apply to the new one, as with
  // other schedules.
  std::string restore(std::span<const double> state) override {
    if (state.size() != 4 && state.size() != 5) return "";
    const bool same = state.size() == 4 || base_ == state[4];  // size 4: written by older versions
    lr_ = same ? state[0] : state[4] > 0 ? base_ * (state[0] / state[4]) : base_;
    best_ = state[1];
    bad_ = static_cast<int64_t>(state[2]);
    cooling_ = static_cast<int64_t>(state[3]);
    if (same) return "";
    return fmt::format(
        "the learning rate continues at {:g}: {:g} times the reductions by reduce_on_plateau so "
        "far",
        lr_, base_);
  }

 private:
  ReduceOnPlateau settings_;
  double base_, lr_;
  double best_;
  int64_t bad_ = 0;      // consecutive values without improvement
  int64_t cooling_ = 0;  // remaining values that are not counted
};

}  // namespace

ScheduleType reduce_on_plateau() {
  return {{registry_entry<ReduceOnPlateau>(
              "reduce_on_plateau",
              "Lowers the learning rate when the loss of evaluations (the training loss, without "
              "evaluation) stops improving.")},
          [](const std::any& settings, double base, int64_t) -> std::unique_ptr<Schedule> {
            return std::make_unique<Plateau>(std::any_cast<const ReduceOnPlateau&>(settings), base);
          },
          "epoch",
          [](const std::any& settings, int64_t) {
            return torch_call(std::any_cast<const ReduceOnPlateau&>(settings));
          },
          true,
          [](const std::any& settings) {
            return std::any_cast<const ReduceOnPlateau&>(settings).mode == "max";
          }};
}

}  // namespace dpt::schedules
