// Formulas are those of torch.nn.init, in the same order of operations: bounds and deviations are
// computed in double (Glorot and Bengio, 2010; He et al., 2015).
#include "layers/initialisation.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/fail.h"
#include "formats/python_call.h"
#include "layers/xavier.h"

namespace dpt {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();
constexpr Range kFinite{
    .text = "must be a number that fits in a float", .low = -kLargest, .high = kLargest};

// fan_in: how many inputs each output depends on. fan_out: how many outputs each input affects.
struct Fans {
  double in, out;
  Fans(std::string_view name, const Shape& shape) {
    if (shape.rank() < 2)
      fail(Fault::spec,
           "{} needs a weight of two or more dimensions, but this parameter is {}; use another "
           "initialization, such as uniform or normal",
           name, shape.str());
    const auto window = static_cast<double>(shape.tail(2).elements());
    in = static_cast<double>(shape[1]) * window;
    out = static_cast<double>(shape[0]) * window;
  }
};

struct Uniform {
  static constexpr std::string_view kName = "uniform";
  static constexpr Usage kUsage{"torch.nn.init.uniform_",
                                "- linear: 10\n"
                                "  init: {uniform: {a: -0.1, b: 0.1}}"};
  double a = 0, b = 1;

  static KeyTable<Uniform> keys() {
    return KeyTable<Uniform>()
        .optional("a", &Uniform::a, "smallest number", kFinite)
        .optional("b", &Uniform::b, "upper limit, never drawn itself", kFinite);
  }
  static void check(const Uniform& u, const Owner& owner, Diagnostics& d) {
    if (u.a > u.b) d.error(owner.at("a"), fmt::format("a is {}, above b, which is {}", u.a, u.b));
  }
  Init make(const Shape&) const { return {.kind = Init::Kind::uniform, .a = a, .b = b}; }
};

struct Normal {
  static constexpr std::string_view kName = "normal";
  static constexpr Usage kUsage{"torch.nn.init.normal_",
                                "- linear: 10\n"
                                "  init: {normal: {std: 0.02, mean: 0}}"};
  double std = 1, mean = 0;

  static KeyTable<Normal> keys() {
    return KeyTable<Normal>()
        .optional("std", &Normal::std, "standard deviation",
                  Range{.text = "must not be negative", .low = 0, .high = kLargest})
        .optional("mean", &Normal::mean, "mean", kFinite);
  }
  Init make(const Shape&) const { return {.kind = Init::Kind::normal, .a = mean, .b = std}; }
};

struct TruncNormal {
  static constexpr std::string_view kName = "trunc_normal";
  static constexpr Usage kUsage{"torch.nn.init.trunc_normal_",
                                "- linear: 10\n"
                                "  init: {trunc_normal: {std: 0.02, mean: 0, a: -0.04, b: 0.04}}"};
  // If less probability than this lies in [a, b], PyTorch draws by another method.
  static constexpr double kLeast = 0.3;
  double std = 1, mean = 0, a = -2, b = 2;

  static KeyTable<TruncNormal> keys() {
    return KeyTable<TruncNormal>()
        .optional("std", &TruncNormal::std, "standard deviation before truncation",
                  Range{.text = "must be positive", .low = 0, .high = kLargest, .above_low = true})
        .optional("mean", &TruncNormal::mean, "mean before truncation", kFinite)
        .optional("a", &TruncNormal::a, "smallest number")
        .optional("b", &TruncNormal::b, "largest number");
  }
  static void check(const TruncNormal& t, const Owner& owner, Diagnostics& d) {
    const double share = t.share();
    if (!(share > kLeast))
      d.error(owner.where,
              fmt::format("[a, b] holds {:.1f} % of this normal distribution, and must hold more "
                          "than {:.0f} %; change a and b, or use uniform",
                          100 * share, 100 * kLeast));
  }
  Init make(const Shape&) const {
    return {.kind = Init::Kind::truncated, .a = mean, .b = std, .low = a, .high = b};
  }

 private:
  double share() const {
    const auto below = [&](double x) {
      return (1 + std::erf((x - mean) / std / std::numbers::sqrt2)) / 2;
    };
    return below(b) - below(a);
  }
};

struct Constant {
  static constexpr std::string_view kName = "constant";
  static constexpr Usage kUsage{"torch.nn.init.constant_",
                                "- linear: 10\n"
                                "  init: {weight: xavier_uniform, bias: {constant: {val: 0.1}}}"};
  double val = 0;

  static KeyTable<Constant> keys() {
    return KeyTable<Constant>().required("val", &Constant::val, "value of every element", kFinite);
  }
  Init make(const Shape&) const { return {.a = val}; }
};

// kNumber: 0 or 1, everywhere.
template <int kNumber>
struct Filled {
  static constexpr std::string_view kName = kNumber == 0 ? "zeros" : "ones";
  static constexpr Usage kUsage = kNumber == 0 ? Usage{"torch.nn.init.zeros_",
                                                       "- linear: 10\n"
                                                       "  init: {bias: zeros}"}
                                               : Usage{"torch.nn.init.ones_",
                                                       "- linear: 10\n"
                                                       "  init: ones"};
  static KeyTable<Filled> keys() { return {}; }
  Init make(const Shape&) const { return {.a = kNumber}; }
};

constexpr Range kGain{.text = "must not be negative", .low = 0, .high = kLargest};

template <bool kUniform>
struct Xavier {
  static constexpr std::string_view kName = kUniform ? "xavier_uniform" : "xavier_normal";
  static constexpr Usage kUsage = kUniform ? Usage{"torch.nn.init.xavier_uniform_",
                                                   "- linear: 10\n"
                                                   "  init: xavier_uniform\n"
                                                   "- linear: 10\n"
                                                   "  init: {xavier_uniform: {gain: 2}}"}
                                           : Usage{"torch.nn.init.xavier_normal_",
                                                   "- linear: 10\n"
                                                   "  init: xavier_normal\n"
                                                   "- linear: 10\n"
                                                   "  init: {xavier_normal: {gain: 2}}"};
  double gain = 1;

  static KeyTable<Xavier> keys() {
    return KeyTable<Xavier>().optional(
        "gain", &Xavier::gain,
        kUniform ? "factor of the range" : "factor of the standard deviation", kGain);
  }
  Init make(const Shape& shape) const {
    const Fans fans(kName, shape);
    if (kUniform) return layers::xavier_uniform(fans.in, fans.out, gain);
    return {
        .kind = Init::Kind::normal, .a = 0, .b = layers::xavier_deviation(fans.in, fans.out, gain)};
  }
};

template <bool kUniform>
struct Kaiming {
  static constexpr std::string_view kName = kUniform ? "kaiming_uniform" : "kaiming_normal";
  static constexpr Usage kUsage =
      kUniform
          ? Usage{"torch.nn.init.kaiming_uniform_",
                  "- linear: 10\n"
                  "  init: {kaiming_uniform: {a: 0.2, mode: fan_out, nonlinearity: leaky_relu}}"}
          : Usage{"torch.nn.init.kaiming_normal_",
                  "- linear: 10\n"
                  "  init: {weight: {kaiming_normal: {a: 0, mode: fan_in, nonlinearity: relu}}, "
                  "bias: zeros}"};
  double a = 0;
  std::string mode = "fan_in", nonlinearity = "leaky_relu";

  static KeyTable<Kaiming> keys() {
    return KeyTable<Kaiming>()
        .optional("a", &Kaiming::a, "negative slope of the leaky_relu that follows", kFinite)
        .choice("mode", &Kaiming::mode, {"fan_in", "fan_out"},
                "keeps the variance of activations (fan_in) or of gradients (fan_out)")
        .choice("nonlinearity", &Kaiming::nonlinearity,
                {"linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"},
                "activation that follows the layer");
  }
  Init make(const Shape& shape) const {
    const Fans fans(kName, shape);
    const double deviation = gain() / std::sqrt(mode == "fan_in" ? fans.in : fans.out);
    if (!kUniform) return {.kind = Init::Kind::normal, .a = 0, .b = deviation};
    const double bound = std::sqrt(3.0) * deviation;
    return {.kind = Init::Kind::uniform, .a = -bound, .b = bound};
  }

 private:
  double gain() const {  // torch.nn.init.calculate_gain
    if (nonlinearity == "tanh") return 5.0 / 3;
    if (nonlinearity == "relu") return std::sqrt(2.0);
    if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + a * a));
    if (nonlinearity == "selu") return 3.0 / 4;
    return 1;
  }
};

template <class I>
InitialisationType type_of(std::string_view summary) {
  return {registry_entry<I>(I::kName, summary),
          [](const std::any& settings, const Shape& shape) {
            return std::any_cast<const I&>(settings).make(shape);
          },
          [](const std::any& settings, std::string_view parameter) {
            return PythonCall(I::kUsage.callee())
                .expression(parameter)
                .keys(I::keys().arguments(std::any_cast<const I&>(settings)))
                .str();
          }};
}

}  // namespace

std::span<const InitialisationType> initialisation_table() {
  static const std::array<InitialisationType, 10> table = {
      type_of<Uniform>("Uniform distribution from a to b."),
      type_of<Normal>("Normal distribution."),
      type_of<TruncNormal>("Normal distribution truncated to [a, b]."),
      type_of<Constant>("The same number everywhere."),
      type_of<Filled<0>>("0 everywhere."),
      type_of<Filled<1>>("1 everywhere."),
      type_of<Xavier<true>>(
          "Uniform; the range follows from the numbers of inputs and outputs (Glorot & "
          "Bengio 2010)."),
      type_of<Xavier<false>>(
          "Normal; the deviation follows from the numbers of inputs and outputs (Glorot "
          "& Bengio 2010)."),
      type_of<Kaiming<true>>(
          "Uniform; the range follows from the number of inputs or outputs (He et al. 2015)."),
      type_of<Kaiming<false>>(
          "Normal; the deviation follows from the number of inputs or outputs (He et al. 2015).")};
  return table;
}

std::vector<const RegistryEntry*> initialisation_registry() {
  std::vector<const RegistryEntry*> out;
  for (const InitialisationType& t : initialisation_table()) out.push_back(&t);
  return out;
}

}  // namespace dpt
