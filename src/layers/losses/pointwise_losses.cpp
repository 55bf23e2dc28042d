// The words of the table of pointwise losses (graph/formulas/losses.h): any shape.
#include "graph/formulas/losses.h"
#include "layers/formula_keys.h"
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

// The parameters of the loss are its keys.
template <class F>
struct PointwiseLoss : F, Reduction {
  static constexpr const formula::PointwiseLossRow& kRow = F::kRow;
  static constexpr bool kEstimates = kRow.estimates, kSigns = kRow.signs;
  static constexpr OutputKind kOutputs = kRow.outputs;
  static constexpr Usage kUsage{kRow.torch, kRow.example};
  static constexpr std::string_view kTorchClass = kRow.torch_class;

  std::vector<double> element_weights, positive_weights;

  static KeyTable<PointwiseLoss> keys() {
    KeyTable<PointwiseLoss> out;
    const auto add_reduction = [&] {
      std::vector<std::string_view> words = {"mean", "sum", "none"};
      if (kRow.batchmean) words.insert(words.begin() + 2, "batchmean");
      out.choice("reduction", &Reduction::reduction, words, kDoc);
    };
    if (kRow.reduction_first) add_reduction();
    add_parameters<F>(out);
    if (!kRow.reduction_first) add_reduction();
    if (kRow.weight)
      out.optional("weight", &PointwiseLoss::element_weights,
                   "weight of each element of the last dimension, or one number for all");
    if (kRow.pos_weight)
      out.optional(
          "pos_weight", &PointwiseLoss::positive_weights,
          "weight of positive targets, for each element of the last dimension, or one number for "
          "all");
    return out;
  }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    if (kRow.pairs) output = difference(g, output);
    require_values(kRow.name, g, output, target);
    std::vector<ValueId> in = {output, target, divisor};
    const int64_t outputs = g.shape(output).back();
    const auto add = [&](std::string_view key, const std::vector<double>& values) {
      if (values.size() == 1)
        in.push_back(g.constant(key, {1}, values));
      else if (!values.empty())
        in.push_back(weight_constant(kRow.name, key, g, values, outputs, "outputs"));
    };
    add("weight", element_weights);
    add("pos_weight", positive_weights);
    F loss = static_cast<const F&>(*this);
    if constexpr (kRow.pos_weight) {
      loss.weight = !element_weights.empty();
      loss.pos_weight = !positive_weights.empty();
    }
    if constexpr (requires { loss.share; }) {
      if (g.shape(output).rank() < 2)
        fail(Fault::spec, "{} takes outputs [N, C], not {}", kRow.name, g.shape(output).str());
      if (reduction == "sum") loss.share = 1 / static_cast<double>(outputs);
    }
    return g.apply(kRow.name, in, loss);
  }

  Divisor divisor() const {
    return over(reduction == "batchmean" ? Divisor::samples
                : kRow.pairs             ? Divisor::half_elements
                                         : Divisor::elements);
  }

  static LossType type() {
    LossType out = loss_type<PointwiseLoss>(kRow.name, kRow.summary);
    out.needs = kRow.needs;
    if (kRow.unit_targets) out.target_problem = target_problem;
    return out;
  }

 private:
  // The first half of [N, 2, ...] minus the second: [N, ...], or [N, 1].
  static ValueId difference(GraphBuilder& g, ValueId output) {
    const Shape y = g.shape(output);
    if (y.rank() < 2 || y[1] != 2)
      fail(Fault::spec,
           "{} compares two scores of each sample [N, 2, ...], but the model's output is {}",
           kRow.name, y.str());
    const ValueId first = g.apply("slice", {output}, SliceOf{.dim = 1, .begin = 0, .length = 1}),
                  second = g.apply("slice", {output}, SliceOf{.dim = 1, .begin = 1, .length = 1}),
                  minus = g.apply("scale", {second, g.constant("minus", {1}, {-1})});
    const ValueId both = g.apply("add", {first, minus});
    return y.rank() == 2 ? both : g.apply("reshape", {both}, Reshape{y.tail(2).batch(y[0])});
  }
  static std::string target_problem(const std::any&, std::span<const float> values,
                                    std::span<const int32_t>) {
    for (const float t : values)
      if (!(t >= 0 && t <= 1))
        return fmt::format(
            "has the target {:g}, but {} takes targets from 0 to 1; scale the targets, or choose "
            "another loss",
            t, kRow.name);
    return "";
  }
};

template <class... F>
std::vector<LossType> types_of(formula::FormulaList<F...>) {
  return {PointwiseLoss<F>::type()...};
}

}  // namespace

std::vector<LossType> pointwise_losses() { return types_of(formula::PointwiseLosses{}); }

}  // namespace dpt::losses
