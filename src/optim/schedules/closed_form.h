// Turns the settings struct of a schedule that is a function of the interval alone into a registry
// entry. PyTorch computes most of these step by step from the previous learning rate, so values
// differ by the rounding errors that it accumulates.
#pragma once

#include <any>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "optim/schedule.h"

namespace dpt {

// REQUIRES: Settings has keys(), double lr(double base, int64_t k, int64_t total) const, and
// kUsage. Optional: std::optional<double> momentum(int64_t k, int64_t total) const, and
// std::string torch(int64_t total) const if the call in PyTorch has other arguments than its keys.
template <class Settings>
class ClosedForm : public Schedule {
 public:
  ClosedForm(Settings settings, double base, int64_t total)
      : settings_(std::move(settings)), base_(base), total_(total) {}

  double lr(int64_t k) override { return settings_.lr(base_, k, total_); }

  std::optional<double> momentum(int64_t k) override {
    if constexpr (requires { settings_.momentum(k, total_); })
      return settings_.momentum(k, total_);
    else
      return {};
  }

 private:
  Settings settings_;
  double base_;
  int64_t total_;
};

template <class Settings>
ScheduleType closed_form(std::string_view name, std::string_view summary) {
  ScheduleType t{registry_entry<Settings>(name, summary)};
  t.make = [](const std::any& settings, double base, int64_t total) -> std::unique_ptr<Schedule> {
    return std::make_unique<ClosedForm<Settings>>(std::any_cast<const Settings&>(settings), base,
                                                  total);
  };
  t.torch = [](const std::any& any, int64_t total) {
    const auto& settings = std::any_cast<const Settings&>(any);
    if constexpr (requires { settings.torch(total); })
      return settings.torch(total);
    else
      return torch_call(settings);
  };
  return t;
}

}  // namespace dpt
