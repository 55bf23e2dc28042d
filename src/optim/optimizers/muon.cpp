// muon: momentum whose matrices are made orthogonal (Jordan et al., 2024), as torch.optim.Muon, and
// adam_w for all other parameters, for which PyTorch needs a second optimizer.
#include <algorithm>

#include "optim/optimizers/adam_w.h"
#include "spec/parameter_keys.h"

namespace dpt::optimizers {
namespace {

struct Muon {
  static constexpr Usage kUsage{
      "torch.optim.Muon",
      "optimizer: {muon: 0.02}\n"
      "optimizer: {muon: {lr: 0.02, adam_w: {lr: 0.0003}, adam_w_for: [embed, head]}}\n"
      "optimizer: {muon: {lr: 0.001, weight_decay: 0.1, momentum: 0.95, nesterov: true,\n"
      "    ns_coefficients: [3.4445, -4.775, 2.0315], eps: 1e-7, ns_steps: 5,\n"
      "    adjust_lr_fn: match_rms_adamw}}"};

  double lr = 1e-3;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::vector<double> ns_coefficients = {3.4445, -4.7750, 2.0315};
  double eps = 1e-7;
  int64_t ns_steps = 5;
  std::string adjust_lr_fn = "original";
  AdamW adam_w;
  Patterns adam_w_for;
  bool of_elements = false;  // these are the settings of parameters that adam_w updates

  // Its parameters are divided between two optimizers.
  static constexpr bool kNotExported = true;

  static KeyTable<Muon> keys() {
    using S = Muon;
    return KeyTable<S>()
        .optional("lr", &S::lr, "learning rate of matrices", kNotNegative)
        .optional("weight_decay", &S::weight_decay,
                  "decoupled weight decay: each step multiplies weights by 1 - lr * weight_decay",
                  kNotNegative)
        .optional("momentum", &S::momentum, "decay rate of the average of the gradient", kBelowOne)
        .optional("nesterov", &S::nesterov,
                  "whether to use an average of the gradient and its average (Nesterov momentum)")
        .optional("ns_coefficients", &S::ns_coefficients,
                  "a, b and c of the Newton-Schulz steps that make the average orthogonal")
        .optional("eps", &S::eps, "least norm by which the average is divided", kNotNegative)
        .optional("ns_steps", &S::ns_steps, "number of Newton-Schulz steps",
                  Range{.text = "must be between 0 and 99", .low = 0, .high = 99})
        .choice("adjust_lr_fn", &S::adjust_lr_fn, {"original", "match_rms_adamw"},
                "factor of lr for a matrix [A, B]: original: sqrt(max(1, A / B)); "
                "match_rms_adamw: 0.2 * sqrt(max(A, B))")
        .optional_section(
            "adam_w",
            "settings of optimizer adam_w for parameters that are no matrices; none: its defaults",
            [](S& s, const Node& n, Diagnostics& d) {
              s.adam_w = AdamW::keys().decode(n, {"'adam_w'", n.where}, d);
            },
            {.kind = "a number or a map", .keys = AdamW::keys().describe(), .main = true})
        .optional_section(
            "adam_w_for",
            "matrices that adam_w updates, too, by name or pattern as in `freeze`: embeddings and "
            "the last layer should be among them",
            [](S& s, const Node& n, Diagnostics& d) {
              read_patterns("adam_w_for", s.adam_w_for, n, d);
            },
            patterns_doc("[]"));
  }

  static void check(const Muon& s, const Owner& owner, Diagnostics& d) {
    if (s.ns_coefficients.size() != 3)
      d.error(owner.at("ns_coefficients"),
              "'ns_coefficients' must be three numbers, as in [3.4445, -4.775, 2.0315]");
  }

  // For matrices: the average of the gradient, and nothing.
  std::vector<std::string> states(bool cycles_momentum) const {
    return adam_w.states(cycles_momentum);
  }

  OptimizerStep step(int64_t t, double rate, const Momenta& momenta) const {
    if (of_elements) return adam_w.step(t, rate, momenta);
    return formula::Muon<double>{.momentum = momentum,
                                 .one_minus_momentum = 1 - momentum,
                                 .nesterov = nesterov,
                                 .a = ns_coefficients[0],
                                 .b = ns_coefficients[1],
                                 .c = ns_coefficients[2],
                                 .eps = eps,
                                 .steps = static_cast<int>(ns_steps),
                                 .lr = rate,
                                 .keep = 1 - rate * weight_decay,
                                 .match_rms = adjust_lr_fn == "match_rms_adamw"};
  }
};

}  // namespace

OptimizerType muon() {
  OptimizerType type = optimizer_type<Muon>(
      "muon", "Muon (Jordan et al. 2024): orthogonal updates of matrices; adam_w for the rest.");
  type.of_elements = [](const std::any& s) -> std::any {
    auto out = std::any_cast<const Muon&>(s);
    out.lr = out.adam_w.lr;
    out.weight_decay = out.adam_w.weight_decay;
    out.of_elements = true;
    return out;
  };
  type.elementwise = [](const std::any& s) -> const Patterns& {
    return std::any_cast<const Muon&>(s).adam_w_for;
  };
  type.with = [](const std::any& s, double lr, std::optional<double> weight_decay) -> std::any {
    auto out = std::any_cast<const Muon&>(s);
    out.lr = lr;
    out.weight_decay = weight_decay.value_or(out.weight_decay);
    if (out.of_elements) {
      out.adam_w.lr = lr;
      out.adam_w.weight_decay = out.weight_decay;
    }
    return out;
  };
  return type;
}

}  // namespace dpt::optimizers
