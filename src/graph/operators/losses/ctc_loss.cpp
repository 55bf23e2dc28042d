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

#include "graph/formulas/ctc.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in, const Ctc& attrs) {
  const TensorDesc &y = in[0], &t = in[1];
  need_real("ctc_loss", y);
  if (y.shape.rank() != 3 || y.shape[1] < 1)
    fail(Fault::spec, "ctc_loss: output {} must be [N, T, C] with at least one time", str(y));
  if (t.dtype != DType::i32 || t.shape.rank() != 2 || t.shape[0] != y.shape[0])
    fail(Fault::spec, "ctc_loss: output {} needs labels i32[{}, S], not {}", str(y), y.shape[0],
         str(t));
  const int64_t blank = attrs.blank;
  if (blank < 0 || blank >= y.shape[2])
    fail(Fault::spec, "ctc_loss: blank {} is not among the {} classes of output {}", blank,
         y.shape[2], str(y));
  need_divisor(y, in[2]);
}

// Sample n. Throws Error{data} if one of its labels is no class, or the blank.
template <class T>
formula::CtcSample<T> sample_of(const KernelArgs& args, int64_t n, const Ctc& s) {
  const Shape& y = args.in[0].desc.shape;
  const int64_t most = args.in[1].desc.shape[1];
  const int32_t* const labels = args.in[1].as<const int32_t>().data() + n * most;
  const formula::CtcSample<T> out{.scores = args.in[0].as<const T>().data() + n * y[1] * y[2],
                                  .times = y[1],
                                  .classes = y[2],
                                  .labels = labels,
                                  .length = formula::ctc_length(labels, most, s.ignore_index),
                                  .blank = s.blank};
  if (const int64_t i = formula::ctc_wrong_label(out); i < out.length)
    fail(Fault::data, "label {} of sample {} in its batch is {}", labels[i], n,
         labels[i] == s.blank
             ? fmt::format("the blank of ctc_loss: if it is padding, write ignore_index: {}; "
                           "otherwise choose another blank",
                           labels[i])
             : fmt::format("not in [0, {}); write its padding as ignore_index", y[2]));
  return out;
}

void forward(const KernelArgs& args, const Ctc& s) {
  std::vector<double> memory(
      static_cast<size_t>(formula::ctc_loss_numbers(args.in[1].desc.shape[1])));
  with_type_of(args.in[0], [&]<class T>(T) {
    double sum = 0;
    for (int64_t n = 0; n < args.in[0].desc.shape[0]; ++n) {
      const formula::CtcSample<T> sample = sample_of<T>(args, n, s);
      const double loss = formula::ctc_loss(sample, memory.data());
      if (!s.zero_infinity || !std::isinf(loss))
        sum += loss * formula::ctc_factor(sample.length, s.by_length);
    }
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const Ctc& s) {
  const Shape& y = args.in[0].desc.shape;
  std::vector<double> memory(
      static_cast<size_t>(formula::ctc_slopes_numbers(args.in[1].desc.shape[1], y[1])));
  with_type_of(args.in[0], [&]<class T>(T) {
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    for (int64_t n = 0; n < y[0]; ++n) {
      const formula::CtcSample<T> sample = sample_of<T>(args, n, s);
      formula::ctc_slopes(sample, formula::ctc_factor(sample.length, s.by_length) / divisor,
                          s.zero_infinity, memory.data(),
                          args.out[0].as<T>().data() + n * y[1] * y[2]);
    }
  });
}

}  // namespace

Operators ctc_loss() {
  return loss_types<check, forward, backward>("ctc_loss", "ctc_loss_gradient");
}

}  // namespace dpt::operators
