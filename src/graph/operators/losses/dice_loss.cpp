// dice_loss: for each sample and channel of probabilities p [N, C, ...] with targets t of that
// shape, or classes [N, ...] whose t is 1 in their channel: 1 - (2 sum(p t) + smooth) / (sum(p) +
// sum(t) + smooth), times `share`.
#include "graph/formulas/vector_losses.h"
#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in) {
  need_classes("dice_loss", in[0], 1);
  const TensorDesc classes{DType::i32, positions_of(in[0].shape, 1)};
  if (in[1] != in[0] && in[1] != classes)
    fail(Fault::spec, "dice_loss: output {} needs targets {} or classes {}, not {}", str(in[0]),
         str(in[0]), str(classes), str(in[1]));
  need_divisor(in[0], in[2]);
}

// Calls f(index of the first element, positions, target) for each channel of each sample, where
// target(i) is that of position i.
template <class T, class F>
void for_each_channel(const KernelArgs& args, F f) {
  const Along a = along(args.in[0].desc.shape, 1);
  const bool by_class = args.in[1].desc.dtype == DType::i32;
  const auto inner = static_cast<size_t>(a.inner);
  if (by_class)
    for_each_position(args.in[0], args.in[1], 1, -1, [](const Position&) {});  // checks classes
  for (int64_t n = 0; n < a.outer; ++n)
    for (int64_t c = 0; c < a.extent; ++c) {
      const auto first = static_cast<size_t>(n * a.extent + c) * inner;
      if (by_class) {
        const int32_t* const classes =
            args.in[1].as<const int32_t>().data() + static_cast<size_t>(n) * inner;
        f(first, inner, [=](size_t i) { return classes[i] == c ? 1.0 : 0.0; });
      } else {
        const T* const t = args.in[1].as<const T>().data() + first;
        f(first, inner, [=](size_t i) { return static_cast<double>(t[i]); });
      }
    }
}

template <class T, class Target>
formula::Overlap overlap(const T* p, size_t positions, const Target& target) {
  formula::Overlap out;
  for (size_t i = 0; i < positions; ++i) add(out, static_cast<double>(p[i]), target(i));
  return out;
}

void forward(const KernelArgs& args, const Dice& s) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto p = args.in[0].as<const T>();
    double sum = 0;
    for_each_channel<T>(args, [&](size_t first, size_t positions, auto target) {
      sum += s.share * formula::dice(overlap(&p[first], positions, target), s.smooth);
    });
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const Dice& s) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto p = args.in[0].as<const T>();
    const auto dp = args.out[0].as<T>();
    const double factor = s.share / static_cast<double>(args.in[2].as<const T>()[0]);
    for_each_channel<T>(args, [&](size_t first, size_t positions, auto target) {
      const formula::Overlap o = overlap(&p[first], positions, target);
      for (size_t i = 0; i < positions; ++i)
        dp[first + i] = static_cast<T>(factor * formula::dice_slope(o, target(i), s.smooth));
    });
  });
}

}  // namespace

Operators dice_loss() {
  return loss_types<check, forward, backward>("dice_loss", "dice_loss_gradient");
}

}  // namespace dpt::operators
