#include "graph/formulas/losses.h"

#include "graph/attrs.h"
#include "graph/formulas/losses/gaussian_nll.h"
#include "graph/samples/samples.h"

namespace dpt {
namespace {

constexpr Sample::Range kDivisor{1, 8}, kWeights{0, 2};

// Without weights, and with each choice of those that the loss has.
template <class F>
void add_pointwise(Samples& out) {
  constexpr const formula::PointwiseLossRow& kRow = F::kRow;
  for (const formula::LossSample& s : F::kSamples)
    for (int given = 0; given < (kRow.pos_weight ? 4 : kRow.weight ? 2 : 1); ++given) {
      F loss = formula::with_parameters<F>(s.parameters);
      if constexpr (kRow.pos_weight) {
        loss.weight = given % 2 != 0;
        loss.pos_weight = given / 2 != 0;
      }
      for (const Shape& shape : {Shape{3, 5}, Shape{4, 1}, Shape{2, 3, 17}}) {
        std::vector<TensorDesc> in = {f32(shape), f32(shape), f32({1})};
        std::vector<Sample::Range> ranges = {
            {s.low, s.high}, {s.target_low, s.target_high}, kDivisor};
        for (int i = 0; i < given % 2 + given / 2; ++i) {
          in.push_back(f32({shape.back()}));
          ranges.push_back(kWeights);
        }
        out.push_back(sample(kRow.name, std::move(in), loss, std::move(ranges)));
      }
    }
}

template <class... F>
Samples pointwise(formula::FormulaList<F...>) {
  Samples out;
  (add_pointwise<F>(out), ...);
  return out;
}

// A loss of scores x and targets t. classes: 0, or the number of weights.
Sample of_classes(std::string_view op, Shape x, TensorDesc t, int64_t classes, std::any attrs,
                  Sample::Range scores, double targets) {
  std::vector<TensorDesc> in = {f32(x), t, f32({1})};
  std::vector<Sample::Range> ranges = {scores, {0, targets}, kDivisor};
  if (classes > 0) {
    in.push_back(f32({classes}));
    ranges.push_back(kWeights);
  }
  return sample(op, std::move(in), std::move(attrs), std::move(ranges));
}

Samples cross_entropy() {
  Samples out;
  const auto add = [&](Shape x, TensorDesc t, bool weight, CrossEntropy attrs) {
    const int64_t classes = x[attrs.dim];
    out.push_back(of_classes("cross_entropy", x, t, weight ? classes : 0, attrs, {-3, 3},
                             t.dtype == DType::i32 ? static_cast<double>(classes) : 1));
  };
  add({5, 3}, i32({5}), false, {});
  add({7, 10}, i32({7}), false, {});
  add({7, 10}, i32({7}), true, {.label_smoothing = 0.1});
  add({5, 3}, i32({5}), true, {.ignore_index = 1});
  add({3, 37}, i32({3}), false, {.label_smoothing = 0.2, .ignore_index = 2});
  add({3, 1}, i32({3}), false, {});
  add({2, 3, 4}, i32({2, 4}), true, {.label_smoothing = 0.3, .ignore_index = 0});
  add({5, 3}, f32({5, 3}), false, {});
  add({4, 11}, f32({4, 11}), true, {.label_smoothing = 0.1});
  add({2, 3, 4}, f32({2, 3, 4}), false, {.label_smoothing = 0.1});
  add({2, 3, 7}, i32({2, 3}), true, {.label_smoothing = 0.2, .ignore_index = 1, .dim = 2});
  add({3, 5, 17}, i32({3, 5}), false, {.dim = 2});
  add({2, 3, 4}, f32({2, 3, 4}), true, {.dim = 2});
  add({2, 21, 17}, i32({2, 17}), true, {.label_smoothing = 0.1, .ignore_index = 3});
  add({2, 21, 17}, f32({2, 21, 17}), true, {.label_smoothing = 0.1});
  return out;
}

Samples nll_loss() {
  Samples out;
  const auto add = [&](Shape x, Shape t, bool weight, NllLoss attrs) {
    const int64_t classes = x[attrs.dim];
    out.push_back(of_classes("nll_loss", x, i32(t), weight ? classes : 0, attrs, {-5, 0},
                             static_cast<double>(classes)));
  };
  add({5, 3}, {5}, false, {});
  add({7, 10}, {7}, true, {.ignore_index = 4});
  add({2, 3, 4}, {2, 4}, true, {});
  add({2, 3, 4}, {2, 3}, true, {.ignore_index = 2, .dim = 2});
  add({7, 5}, {7}, false, {.gamma = 2});
  add({2, 3, 4}, {2, 4}, true, {.ignore_index = 1, .gamma = 0.5});
  return out;
}

// The slope for p = 1 jumps where a distance is 0, which central differences would see: there all
// distances are above 0.
Samples multi_margin() {
  Samples out;
  const auto add = [&](Shape x, bool weight, MultiMargin attrs, bool lists = false) {
    out.push_back(of_classes("multi_margin_loss", x, i32(lists ? x : Shape{x[0]}),
                             weight ? x[1] : 0, attrs, {-1, 1}, static_cast<double>(x[1])));
    if (lists) out.back().ranges[1].low = -3;
  };
  add({5, 3}, false, {.p = 1, .margin = 4});
  add({7, 10}, true, {.p = 1, .margin = 3});
  add({6, 4}, false, {.p = 2, .margin = 0.5});
  add({3, 17}, true, {.p = 2, .margin = 1});
  add({2, 1}, false, {});
  add({6, 5}, false, {.p = 1, .margin = 3}, true);
  return out;
}

Samples dice() {
  return {
      of_classes("dice_loss", {2, 3, 4, 5}, i32({2, 4, 5}), 0, Dice{.share = 1.0 / 3}, {0, 1}, 3),
      of_classes("dice_loss", {3, 1, 17}, f32({3, 1, 17}), 0, Dice{}, {0, 1}, 1),
      of_classes("dice_loss", {2, 2, 3, 3}, f32({2, 2, 3, 3}), 0, Dice{.smooth = 1, .share = 0.5},
                 {0, 1}, 1),
      of_classes("dice_loss", {5, 4}, i32({5}), 0, Dice{.smooth = 0.1}, {0, 1}, 4)};
}

// Labels 1 to 3 with the blank 0, short enough for an alignment even if all are equal.
Samples ctc() {
  Samples out;
  for (const bool by_length : {true, false})
    for (const auto& [y, labels] : {std::pair{Shape{3, 7, 4}, 3}, std::pair{Shape{2, 2, 5}, 1},
                                    std::pair{Shape{2, 20, 4}, 9}})
      out.push_back(sample("ctc_loss", {f32(y), i32({y[0], labels}), f32({1})},
                           Ctc{.by_length = by_length}, {{-2, 2}, {1, 4}, kDivisor}));
  return out;
}

// Of distances between outputs, and of a distribution. With the margin -1 no cosine lies below it,
// and with a large margin no loss of triplets is below 0, where the slopes jump.
Samples others() {
  Samples out;
  for (const double target : {1.0, -1.0})
    for (const Shape& y : {Shape{3, 2, 5}, Shape{2, 2, 17}})
      out.push_back(sample("cosine_embedding_loss", {f32(y), f32({y[0], 1}), f32({1})},
                           CosineEmbedding{-1}, {{-2, 2}, {target, target}, kDivisor}));
  for (const TripletMargin& s : {TripletMargin{.margin = 100}, TripletMargin{.margin = 100, .p = 3},
                                 TripletMargin{.margin = 100, .eps = 0.1, .swap = true}})
    for (const Shape& y : {Shape{3, 3, 5}, Shape{2, 3, 17}})
      out.push_back(sample("triplet_margin_loss", {f32(y), f32({1})}, s, {{-2, 2}, kDivisor}));
  for (const bool log_variance : {false, true})
    for (const Shape& y : {Shape{3, 4}, Shape{4, 2}, Shape{2, 6, 5}})
      out.push_back(
          sample("gaussian_nll_loss", {f32(y), f32(y.with(1, y[1] / 2)), f32({1})},
                 formula::GaussianNll{.log_variance = log_variance, .full = y.rank() == 3},
                 {log_variance ? Sample::Range{-2, 2} : Sample::Range{0.5, 3}, {-2, 2}, kDivisor}));
  return out;
}

Samples counts() {
  const auto correct = [](Shape x, Shape t, CountCorrect attrs, double classes) {
    return sample("count_correct", {f32(x), i32(t)}, attrs, {{}, {0, classes}});
  };
  return {correct({7, 3}, {7}, {}, 3),
          correct({33, 10}, {33}, {}, 10),
          correct({2, 3, 4}, {2, 4}, {}, 3),
          correct({2, 5, 4}, {2, 5}, {2}, 4),
          correct({33, 3}, {33}, {.ignore_index = 1}, 3),
          sample("target_weight", {i32({7})}, NllLoss{}, {{0, 3}}),
          sample("target_weight", {i32({37}), f32({3})}, NllLoss{}, {{0, 3}, kWeights}),
          sample("target_weight", {i32({3, 5}), f32({4})}, NllLoss{.ignore_index = 2},
                 {{0, 4}, kWeights})};
}

}  // namespace

Samples loss_samples() {
  Samples out = pointwise(formula::PointwiseLosses{});
  out += cross_entropy();
  out += nll_loss();
  out += multi_margin();
  out += dice();
  out += ctc();
  out += others();
  return out += counts();
}

}  // namespace dpt
