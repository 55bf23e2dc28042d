// ctc_loss (Graves et al., 2006): connectionist temporal classification of scores [N, T, C] and
// label sequences [N, S] that are shorter than T and whose places in time are unknown, as in speech
// and handwriting.
#include <algorithm>
#include <span>

#include "base/count.h"
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

constexpr std::string_view kCtcTorch = R"py(class Ctc(nn.CTCLoss):
    """Scores [N, T, C]; labels [N, S] end at the first ignore_index."""

    def __init__(self, ignore_index=-100, **settings):
        super().__init__(**settings)
        self.ignore_index = ignore_index

    def forward(self, output, target):
        times = torch.full((len(output),), output.shape[1])
        lengths = (target != self.ignore_index).long().cumprod(dim=1).sum(dim=1)
        log_probs = output.log_softmax(dim=2).transpose(0, 1)
        return super().forward(log_probs, target, times, lengths)
)py";

struct CtcLoss : Reduction {
  static constexpr std::string_view kTorchClass = kCtcTorch;
  static constexpr Usage kUsage{
      "torch.nn.CTCLoss",
      "loss: ctc_loss\n"
      "loss: {ctc_loss: {blank: 4, zero_infinity: true, ignore_index: -1, reduction: sum}}"};

  int64_t blank = 0, ignore_index = -100;
  bool zero_infinity = false;

  static KeyTable<CtcLoss> keys() {
    using S = CtcLoss;
    return KeyTable<S>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("blank", &S::blank, "index of the blank class, which must not occur in targets",
                  kSizeOrZero)
        .optional(
            "zero_infinity", &S::zero_infinity,
            "whether samples whose labels are too long for T steps have a loss of 0 instead of "
            "infinity")
        .optional("ignore_index", &S::ignore_index,
                  "padding of targets; a label sequence ends at the first one");
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    const TensorDesc y = g.desc(output), t = g.desc(target);
    if (y.shape.rank() != 3)
      fail(Fault::spec,
           "ctc_loss takes scores of each class at each time [N, T, C], but the model's output is "
           "{}",
           y.shape.str());
    if (t.dtype != DType::i32 || t.shape.rank() != 2)
      fail(Fault::spec,
           "ctc_loss takes sequences of class numbers [N, S], filled up with ignore_index {}; the "
           "targets are {}{}",
           ignore_index, name_of(t.dtype), t.shape.str());
    if (blank >= y.shape[2])
      fail(Fault::spec, "ctc_loss: blank is {}, but the model has scores of classes 0 to {} only",
           blank, y.shape[2] - 1);
    return g.apply("ctc_loss", {output, target, divisor},
                   Ctc{.blank = blank,
                       .ignore_index = ignore_index,
                       .zero_infinity = zero_infinity,
                       .by_length = reduction == "mean"});
  }
  // See LossType::target_problem.
  std::string problem(std::span<const int32_t> labels) const {
    const auto end = std::ranges::find(labels, ignore_index);
    if (std::ranges::find(labels.begin(), end, blank) != end)
      return fmt::format(
          "has the label {}, which is the blank of ctc_loss: if it is padding, write ignore_index: "
          "{}; otherwise choose another blank",
          blank, blank);
    if (std::ranges::any_of(end, labels.end(), [&](int64_t l) { return l != ignore_index; }))
      return fmt::format("has labels behind the padding {}: padding must come last", ignore_index);
    return "";
  }
  // See LossType::output_problem. A path through the output has a step for each label, and one for
  // the blank between two equal labels.
  std::string length_problem(std::span<const int32_t> labels, const Shape& output) const {
    const auto length = std::ranges::find(labels, ignore_index) - labels.begin();
    int64_t repeats = 0;
    for (int64_t i = 1; i < length; ++i)
      repeats += labels[static_cast<size_t>(i)] == labels[static_cast<size_t>(i) - 1] ? 1 : 0;
    if (zero_infinity || length + repeats <= output[0]) return "";
    return fmt::format(
        "has {}{}, so ctc_loss needs {} time steps, but the model's output has T = {}: reduce the "
        "time less in the model (strides, pooling), shorten or remove the sample, or set "
        "`zero_infinity: true`, which gives such samples a loss of 0",
        counted(length, "label"),
        repeats == 0 ? ""
                     : fmt::format(" and {}, which {} a blank between equal labels",
                                   counted(repeats, "repetition"), repeats == 1 ? "needs" : "need"),
        length + repeats, output[0]);
  }
  Divisor divisor() const { return over(Divisor::samples); }
};

}  // namespace

LossType ctc_loss() {
  LossType type = loss_type<CtcLoss>(
      "ctc_loss",
      "Output [N, T, C], targets [N, S]: negative log-likelihood of label sequences without "
      "alignment. Outputs are scores: log_softmax is applied to them, which leaves "
      "log-probabilities "
      "as they are. `mean` divides each sample's loss by the number of its labels. Behind a "
      "convolution of sequences [N, C, T], `permute: [2, 1]` gives [N, T, C].");
  type.ignore_index = [](const std::any& s) {
    return std::any_cast<const CtcLoss&>(s).ignore_index;
  };
  type.target_problem = [](const std::any& s, std::span<const float>,
                           std::span<const int32_t> labels) {
    return std::any_cast<const CtcLoss&>(s).problem(labels);
  };
  type.output_problem = [](const std::any& s, std::span<const int32_t> labels,
                           const Shape& output) {
    return std::any_cast<const CtcLoss&>(s).length_problem(labels, output);
  };
  type.blank = [](const std::any& s) { return std::any_cast<const CtcLoss&>(s).blank; };
  type.class_dim = [](const std::any&, const Shape&) { return 2; };
  type.needs = "labels must fit into the time of the output: use `zero_infinity: true`";
  return type;
}

}  // namespace dpt::losses
