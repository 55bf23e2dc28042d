// ctc_loss (Graves et al., 2006): the negative log-likelihood of a label sequence, summed over all
// its alignments: the sequences of T labels and blanks that give it once repetitions and then
// blanks are removed. output[N, T, C] holds scores; log_softmax makes them log-probabilities p[t,
// c], which changes nothing if they already are. target[N, S] holds labels, up to the first
// Ctc::ignore_index.
//   With the labels z = blank, z1, blank, z2, ..., blank:
//   alpha[t, s] = p[t, z_s] + log(e^alpha[t-1, s] + e^alpha[t-1, s-1] + e^alpha[t-1, s-2]), the
//   last term only if z_s is no blank and not z_(s-2); beta is the same from the end, and loss =
//   -log(sum over s of e^(alpha[t, s] + beta[t, s] - p[t, z_s])), for any t.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void check(std::span<const TensorDesc> in, const std::any& attrs) {
  const TensorDesc &y = in[0], &t = in[1];
  need_real("ctc_loss", y);
  if (y.shape.rank() != 3 || y.shape[1] < 1)
    fail(Fault::spec, "ctc_loss: output {} must be [N, T, C] with at least one time", str(y));
  if (t.dtype != DType::i32 || t.shape.rank() != 2 || t.shape[0] != y.shape[0])
    fail(Fault::spec, "ctc_loss: output {} needs labels i32[{}, S], not {}", str(y), y.shape[0],
         str(t));
  const int64_t blank = settings<Ctc>(attrs).blank;
  if (blank < 0 || blank >= y.shape[2])
    fail(Fault::spec, "ctc_loss: blank {} is not among the {} classes of output {}", blank,
         y.shape[2], str(y));
  need_divisor(y, in[2]);
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  check(in, attrs);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any& attrs) {
  check(in, attrs);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "ctc_loss_gradient", dy);
}

double log_add(double a, double b) {
  const double most = std::max(a, b);
  return most == kNever ? kNever : most + std::log1p(std::exp(std::min(a, b) - most));
}

// One sample: its log-probabilities, its labels with blanks around them, and its alignments.
class Alignments {
 public:
  template <class T>
  Alignments(const T* scores, int64_t times, int64_t classes, const std::vector<int64_t>& labels,
             int64_t blank)
      : times_(times), classes_(classes), length_(static_cast<int64_t>(labels.size())) {
    for (const int64_t label : labels) labels_.insert(labels_.end(), {blank, label});
    labels_.push_back(blank);
    for (int64_t t = 0; t < times; ++t) add_log_softmax(scores + t * classes);
  }

  int64_t length() const { return length_; }

  double loss() {
    alpha_ = forward(false);
    const int64_t last = states() - 1;
    loss_ = -log_add(at(alpha_, times_ - 1, last),
                     last > 0 ? at(alpha_, times_ - 1, last - 1) : kNever);
    return loss_;
  }

  // d loss / d score, row by row. REQUIRES: loss() was called and is finite.
  std::vector<double> slopes() const {
    const std::vector<double> beta = forward(true);
    std::vector<double> out(log_p_.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::exp(log_p_[i]);
    for (int64_t t = 0; t < times_; ++t)
      for (int64_t s = 0; s < states(); ++s) {
        const double both = at(alpha_, t, s) + at(beta, times_ - 1 - t, states() - 1 - s);
        if (both != kNever)
          out[index(t, label(s))] -= std::exp(both - log_p_[index(t, label(s))] + loss_);
      }
    return out;
  }

 private:
  int64_t states() const { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t state) const { return labels_[static_cast<size_t>(state)]; }
  size_t index(int64_t t, int64_t c) const { return static_cast<size_t>(t * classes_ + c); }
  double at(const std::vector<double>& table, int64_t t, int64_t s) const {
    return table[static_cast<size_t>(t * states() + s)];
  }

  template <class T>
  void add_log_softmax(const T* scores) {
    const auto most = static_cast<double>(*std::max_element(scores, scores + classes_));
    double sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(static_cast<double>(scores[c]) - most);
    for (int64_t c = 0; c < classes_; ++c)
      log_p_.push_back(static_cast<double>(scores[c]) - most - std::log(sum));
  }

  // alpha; or beta, which is alpha of the reversed labels and times.
  std::vector<double> forward(bool reversed) const {
    const auto z = [&](int64_t s) { return label(reversed ? states() - 1 - s : s); };
    std::vector<double> out(static_cast<size_t>(times_ * states()), kNever);
    for (int64_t t = 0; t < times_; ++t)
      for (int64_t s = 0; s < states(); ++s) {
        double before = t == 0 && s < 2 ? 0 : kNever;
        if (t > 0) {
          before = at(out, t - 1, s);
          if (s > 0) before = log_add(before, at(out, t - 1, s - 1));
          if (s > 1 && s % 2 == 1 && z(s) != z(s - 2))
            before = log_add(before, at(out, t - 1, s - 2));
        }
        const int64_t time = reversed ? times_ - 1 - t : t;
        out[static_cast<size_t>(t * states() + s)] = before + log_p_[index(time, z(s))];
      }
    return out;
  }

  int64_t times_, classes_, length_;
  std::vector<int64_t> labels_;
  std::vector<double> log_p_, alpha_;
  double loss_ = 0;
};

std::vector<int64_t> labels_of(const TensorView& target, int64_t sample, int64_t classes,
                               const Ctc& s) {
  const int64_t most = target.desc.shape[1];
  std::vector<int64_t> out;
  for (int64_t i = 0; i < most; ++i) {
    const int64_t label = target.as<const int32_t>()[static_cast<size_t>(sample * most + i)];
    if (label == s.ignore_index) break;
    if (label < 0 || label >= classes || label == s.blank)
      fail(Fault::data, "label {} of sample {} in its batch is {}", label, sample,
           label == s.blank ? "the blank" : fmt::format("not in [0, {})", classes));
    out.push_back(label);
  }
  return out;
}

// Calls f(sample, alignments, loss, factor) for each sample. factor: 1 / the length of its labels
// with by_length.
template <class T, class F>
void for_each_sample(const KernelArgs& args, const std::any& attrs, F f) {
  const auto& s = settings<Ctc>(attrs);
  const Shape& y = args.in[0].desc.shape;
  const T* const scores = args.in[0].as<const T>().data();
  for (int64_t n = 0; n < y[0]; ++n) {
    Alignments a(scores + n * y[1] * y[2], y[1], y[2], labels_of(args.in[1], n, y[2], s), s.blank);
    double loss = a.loss();
    if (s.zero_infinity && std::isinf(loss)) loss = 0;
    f(n, a, loss, s.by_length ? 1 / static_cast<double>(std::max<int64_t>(1, a.length())) : 1);
  }
}

void forward(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    double sum = 0;
    for_each_sample<T>(args, attrs, [&](int64_t, const Alignments&, double loss, double factor) {
      sum += loss * factor;
    });
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    const Shape& y = args.in[0].desc.shape;
    const auto size = static_cast<size_t>(y[1] * y[2]);
    const auto dx = args.out[0].as<T>();
    const bool zero = settings<Ctc>(attrs).zero_infinity;
    for_each_sample<T>(args, attrs,
                       [&](int64_t n, const Alignments& a, double loss, double factor) {
                         T* const to = dx.data() + static_cast<size_t>(n) * size;
                         if (loss == 0 && zero) return std::fill_n(to, size, T{0}), void();
                         const std::vector<double> slopes = a.slopes();
                         for (size_t i = 0; i < size; ++i)
                           to[i] = static_cast<T>(slopes[i] * factor / divisor);
                       });
  });
}

// Labels 1 to 3 with the blank 0, short enough for an alignment even if all are equal.
std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  std::vector<Sample> out;
  for (const bool by_length : {true, false})
    for (const auto& [y, labels] : {std::pair{Shape{3, 7, 4}, 3}, std::pair{Shape{2, 2, 5}, 1}})
      out.push_back({{op,
                      {f32(y), i32({y[0], labels}), f32({1})},
                      {gradient ? f32(y) : TensorDesc{DType::f64, {1}}},
                      Ctc{.by_length = by_length}},
                     {{-2, 2}, {1, 4}, {1, 8}}});
  return out;
}

}  // namespace

OperatorType ctc_loss() {
  return {.name = "ctc_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("ctc_loss", false); },
          .flops = elements_of_first_input};
}

OperatorType ctc_loss_gradient() {
  return {.name = "ctc_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("ctc_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
