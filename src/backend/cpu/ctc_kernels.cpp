// The CPU implementation of ctc_loss.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/ctc.h"
#include "backend/cpu/support.h"
#include "graph/attrs.h"
#include "graph/formulas/ctc.h"
#include "graph/operator.h"

namespace dpt {
namespace {

const CtcKernels& simd() {
  static const CtcKernels& kernels = ctc_simd(simd_kernels().isa);
  return kernels;
}

// The rows of a sample in one direction, with their memory.
class Direction {
 public:
  Direction(size_t times, size_t most_states, bool reversed)
      : times_(times),
        reversed_(reversed),
        label_(most_states),
        skip_(ctc_row(most_states)),
        rows_(times * ctc_row(most_states)),
        offset_(times) {}

  void compute(const formula::CtcSample<float>& x, const std::vector<float>& norm) {
    states_ = static_cast<size_t>(formula::ctc_states(x));
    const auto label = [&](size_t s) {
      const auto at = static_cast<int64_t>(reversed_ ? states_ - 1 - s : s);
      return static_cast<int32_t>(formula::ctc_label(x, at));
    };
    for (size_t s = 0; s < states_; ++s) {
      label_[s] = label(s);
      const bool skips = s > 1 && s % 2 == 1 && label(s) != label(s - 2);
      skip_[kCtcBefore + s] = skips ? 0 : -HUGE_VALF;
    }
    simd().rows({.scores = x.scores,
                 .norm = norm.data(),
                 .times = times_,
                 .classes = static_cast<size_t>(x.classes),
                 .states = states_,
                 .reversed = reversed_,
                 .label = label_.data(),
                 .skip = skip_.data(),
                 .rows = rows_.data(),
                 .offset = offset_.data()});
  }
  const float* row(size_t step) const { return &rows_[step * ctc_row(states_)] + kCtcBefore; }
  double offset(size_t step) const { return offset_[step]; }
  int32_t label(size_t state) const { return label_[state]; }
  size_t states() const { return states_; }
  // The loss of the sample. REQUIRES: these are the rows of alpha.
  double loss() const {
    const float* const last = row(times_ - 1) + states_ - 1;
    const double before = states_ > 1 ? static_cast<double>(last[-1]) : formula::kNever;
    return -(offset_.back() + formula::log_add(static_cast<double>(*last), before));
  }

 private:
  size_t times_, states_ = 0;
  bool reversed_;
  std::vector<int32_t> label_;
  std::vector<float> skip_, rows_;
  std::vector<double> offset_;
};

class CtcLoss : public Kernel {
 public:
  explicit CtcLoss(const KernelQuery& q)
      : type_(op(q.op)),
        attrs_(q.attrs),
        settings_(settings<Ctc>(q)),
        samples_(q.in[0].shape[0]),
        times_(static_cast<size_t>(q.in[0].shape[1])),
        classes_(static_cast<size_t>(q.in[0].shape[2])),
        most_labels_(q.in[1].shape[1]),
        alpha_(times_, most_states(), false),
        beta_(type_.is(Trait::backward) ? times_ : 0, most_states(), true),
        norm_(times_),
        score_(most_states()),
        share_(most_states()),
        of_class_(classes_) {}

  void run(const KernelArgs& args) override {
    double sum = 0;
    for (int64_t n = 0; n < samples_; ++n) {
      const int32_t* const labels = args.in[1].as<const int32_t>().data() + n * most_labels_;
      const formula::CtcSample<float> x{
          .scores = data(args.in[0]) + static_cast<size_t>(n) * times_ * classes_,
          .times = static_cast<int64_t>(times_),
          .classes = static_cast<int64_t>(classes_),
          .labels = labels,
          .length = formula::ctc_length(labels, most_labels_, settings_.ignore_index),
          .blank = settings_.blank};
      if (formula::ctc_wrong_label(x) < x.length)
        return type_.reference(args, attrs_);  // which says what is wrong
      simd().norms(x.scores, norm_.data(), times_, classes_);
      alpha_.compute(x, norm_);
      const double loss = alpha_.loss(),
                   factor = formula::ctc_factor(x.length, settings_.by_length);
      if (!type_.is(Trait::backward)) {
        if (!settings_.zero_infinity || !std::isinf(loss)) sum += loss * factor;
        continue;
      }
      float* const out = data(args.out[0]) + static_cast<size_t>(n) * times_ * classes_;
      if (settings_.zero_infinity && std::isinf(loss))
        std::fill_n(out, times_ * classes_, 0.0F);
      else
        slopes(x, loss, static_cast<float>(factor / divisor(args)), out);
    }
    if (!type_.is(Trait::backward)) args.out[0].as<double>()[0] = sum / divisor(args);
  }

 private:
  size_t most_states() const { return 2 * static_cast<size_t>(most_labels_) + 1; }
  static double divisor(const KernelArgs& args) { return static_cast<double>(*data(args.in[2])); }

  void slopes(const formula::CtcSample<float>& x, double loss, float factor, float* out) {
    beta_.compute(x, norm_);
    for (size_t t = 0; t < times_; ++t) {
      const float* const scores = x.scores + t * classes_;
      const size_t step = times_ - 1 - t, states = alpha_.states();
      for (size_t s = 0; s < states; ++s) score_[s] = scores[static_cast<size_t>(alpha_.label(s))];
      const double shift = alpha_.offset(t) + beta_.offset(step) + loss;
      simd().shares(alpha_.row(t), beta_.row(step), score_.data(), share_.data(), states, norm_[t],
                    static_cast<float>(shift));
      std::ranges::fill(of_class_, 0.0F);
      for (size_t s = 0; s < states; ++s)
        of_class_[static_cast<size_t>(alpha_.label(s))] += share_[s];
      simd().slopes(scores, of_class_.data(), out + t * classes_, classes_, norm_[t], factor);
    }
  }

  const OperatorType& type_;
  std::any attrs_;
  Ctc settings_;
  int64_t samples_;
  size_t times_, classes_;
  int64_t most_labels_;
  Direction alpha_, beta_;
  std::vector<float> norm_, score_, share_, of_class_;
};

std::string refuses(const KernelQuery& q) { return not_f32(q.in[0]); }

std::unique_ptr<Kernel> prepare(const KernelQuery& q) { return std::make_unique<CtcLoss>(q); }

}  // namespace

std::vector<KernelType> ctc_kernels() {
  return {simd_row("ctc_loss", refuses, prepare), simd_row("ctc_loss_gradient", refuses, prepare)};
}

}  // namespace dpt
