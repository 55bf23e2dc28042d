// cosine_annealing: eta_min + (lr - eta_min) * (1 + cos(pi * k / T_max)) / 2, as PyTorch's
// CosineAnnealingLR (Loshchilov and Hutter, 2017, without restarts). It rises again after T_max.
#include <cmath>
#include <numbers>
#include <optional>

#include "formats/python_call.h"
#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct CosineAnnealing {
  static constexpr Usage kUsage{"torch.optim.lr_scheduler.CosineAnnealingLR",
                                "schedule: {cosine_annealing: {}, interval: step, warmup: 300}\n"
                                "schedule: {cosine_annealing: {T_max: 10, eta_min: 0.0001}}"};

  std::optional<int64_t> t_max;
  double eta_min = 0;

  static KeyTable<CosineAnnealing> keys() {
    return KeyTable<CosineAnnealing>()
        .optional("T_max", &CosineAnnealing::t_max,
                  "number of intervals until eta_min; none: the length of the run", kPositive)
        .optional("eta_min", &CosineAnnealing::eta_min, "smallest learning rate", kNotNegative);
  }

  double lr(double base, int64_t k, int64_t total) const {
    const double turn = static_cast<double>(k) / static_cast<double>(t_max.value_or(total));
    return eta_min + (base - eta_min) * (1 + std::cos(std::numbers::pi * turn)) / 2;
  }

  std::string torch(int64_t total) const {
    return PythonCall("lr_scheduler.CosineAnnealingLR")
        .expression("optimizer")
        .key("T_max", t_max.value_or(total))
        .keys(keys().arguments(*this), 1)
        .str();
  }
};

}  // namespace

ScheduleType cosine_annealing() {
  return closed_form<CosineAnnealing>("cosine_annealing",
                                      "Lowers the learning rate to eta_min along half a cosine.");
}

}  // namespace dpt::schedules
