// Metrics against references: naive sums in double, and numbers of scikit-learn.
#include "session/evaluation_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "base/generator.h"
#include "base/half.h"
#include "checkpoint/resumed_run.h"
#include "session/session.h"

namespace dpt {
namespace {

template <class T>
TensorView view(DType dtype, const Shape& shape, std::vector<T>& values,
                Layout layout = Layout::plain) {
  return {{dtype, shape, layout}, reinterpret_cast<std::byte*>(values.data())};
}

double value(const std::vector<NamedValue>& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &NamedValue::name);
  REQUIRE(found != values.end());
  return found->value;
}

// Random scores of `n` targets with `classes` classes each; many are equal.
struct Scores {
  int64_t n, classes;
  std::vector<float> scores;
  std::vector<int32_t> targets;
  Scores(int64_t count, int64_t of) : n(count), classes(of) {
    Generator g(3);
    for (int64_t i = 0; i < n * classes; ++i) scores.push_back(static_cast<float>(g.randint(0, 7)));
    for (int64_t i = 0; i < n; ++i) targets.push_back(static_cast<int32_t>(g.randint(0, classes)));
  }
  // The classes of a target from the highest score to the lowest; equal ones by number.
  std::vector<int32_t> ranking(int64_t i) const {
    std::vector<int32_t> out(static_cast<size_t>(classes));
    std::iota(out.begin(), out.end(), 0);
    std::ranges::stable_sort(out, std::ranges::greater{}, [&](int32_t c) {
      return scores[static_cast<size_t>(i * classes + c)];
    });
    return out;
  }
};

// f1_score(average="macro") by its definition: precision and recall of each class.
double macro_f1(const Scores& s, int32_t ignored) {
  double sum = 0, present = 0;
  for (int32_t c = 0; c < s.classes; ++c) {
    double right = 0, actual = 0, predicted = 0;
    for (int64_t i = 0; i < s.n; ++i) {
      const int32_t t = s.targets[static_cast<size_t>(i)], p = s.ranking(i)[0];
      if (t == ignored) continue;
      actual += t == c, predicted += p == c, right += t == c && p == c;
    }
    if (actual == 0 && predicted == 0) continue;
    ++present;
    const double precision = predicted > 0 ? right / predicted : 0;
    const double recall = actual > 0 ? right / actual : 0;
    sum += precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
  }
  return sum / present;
}

TEST_CASE("topK, f1 and the confusion matrix are those of naive loops, with ignored targets") {
  Scores s(200, 9);
  for (const int32_t ignored : {-100, 4}) {
    CAPTURE(ignored);
    const EvaluationMetrics metrics({.names = {"top1", "top3", "f1", "confusion_matrix"},
                                     .classes = s.classes,
                                     .ignore_index = ignored});
    const EvaluationMetrics short_f1(
        {.names = {"f1"}, .classes = s.classes, .ignore_index = ignored});
    std::vector<double> sums(metrics.size()), short_sums(short_f1.size());
    const TensorView scores = view(DType::f32, {s.n, s.classes}, s.scores);
    const TensorView targets = view(DType::i32, {s.n}, s.targets);
    metrics.add(scores, targets, sums);
    short_f1.add(scores, targets, short_sums);
    double counted = 0, top1 = 0, top3 = 0;
    std::vector<int64_t> matrix(81);
    for (int64_t i = 0; i < s.n; ++i) {
      const int32_t t = s.targets[static_cast<size_t>(i)];
      if (t == ignored) continue;
      const auto order = s.ranking(i);
      ++counted;
      top1 += order[0] == t;
      top3 += std::find(order.begin(), order.begin() + 3, t) != order.begin() + 3;
      ++matrix[static_cast<size_t>(t * 9 + order[0])];
    }
    const auto values = metrics.values(sums, 0);
    CHECK(value(values, "top1") == top1 / counted);  // counts are exact
    CHECK(value(values, "top3") == top3 / counted);
    CHECK(metrics.confusion_matrix(sums) == matrix);
    // Sums of nine numbers below 1, in double.
    CHECK(value(values, "f1") == doctest::Approx(macro_f1(s, ignored)).epsilon(1e-14));
    CHECK(value(short_f1.values(short_sums, 0), "f1") == value(values, "f1"));
    CHECK(short_f1.confusion_matrix(short_sums).empty());
  }
}

TEST_CASE("the macro f1 of scikit-learn's documentation, and a class that is never seen") {
  // f1_score([0, 1, 2, 0, 1, 2], [0, 2, 1, 0, 0, 1], average="macro") is 0.2666...
  const std::vector<int32_t> predicted = {0, 2, 1, 0, 0, 1};
  std::vector<int32_t> actual = {0, 1, 2, 0, 1, 2};
  for (const int64_t classes : {3, 5}) {
    std::vector<float> scores(static_cast<size_t>(6 * classes));
    for (size_t i = 0; i < 6; ++i)
      scores[i * static_cast<size_t>(classes) + static_cast<size_t>(predicted[i])] = 1;
    const EvaluationMetrics metrics({.names = {"f1"}, .classes = classes});
    std::vector<double> sums(metrics.size());
    metrics.add(view(DType::f32, {6, classes}, scores), view(DType::i32, {6}, actual), sums);
    CHECK(value(metrics.values(sums, 0), "f1") == doctest::Approx(0.8 / 3).epsilon(1e-14));
  }
}

TEST_CASE("NaN is the highest score, and equal scores count by class") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> scores = {1, 1, 1, 0, nan, 2};
  std::vector<int32_t> targets = {1, 1};
  const EvaluationMetrics metrics({.names = {"top1", "top2"}, .classes = 3});
  std::vector<double> sums(metrics.size());
  metrics.add(view(DType::f32, {2, 3}, scores), view(DType::i32, {2}, targets), sums);
  const auto values = metrics.values(sums, 0);
  CHECK(value(values, "top1") == 0.5);
  CHECK(value(values, "top2") == 1);
}

TEST_CASE("scores along any dimension, in halves and channels_last, count alike") {
  // [2, 3, 2]: two samples with two positions each.
  std::vector<float> scores = {9, 1, 2, 8, 3, 4, 1, 2, 8, 3, 0, 9};
  std::vector<int32_t> targets = {0, 1, 1, 2};
  const EvaluationMetrics metrics({.names = {"confusion_matrix"}, .classes = 3});
  std::vector<double> sums(metrics.size());
  metrics.add(view(DType::f32, {2, 3, 2}, scores), view(DType::i32, {2, 2}, targets), sums);
  const std::vector<int64_t> expected = {1, 0, 0, 0, 2, 0, 0, 0, 1};
  CHECK(metrics.confusion_matrix(sums) == expected);

  std::vector<float> last;  // [2, 2, 3]
  for (size_t n = 0; n < 2; ++n)
    for (size_t i = 0; i < 2; ++i)
      for (size_t c = 0; c < 3; ++c) last.push_back(scores[n * 6 + c * 2 + i]);
  const EvaluationMetrics along_last({.names = {"confusion_matrix"}, .classes = 3, .class_dim = 2});
  std::vector<double> last_sums(metrics.size());
  along_last.add(view(DType::f32, {2, 2, 3}, last), view(DType::i32, {2, 2}, targets), last_sums);
  CHECK(along_last.confusion_matrix(last_sums) == expected);

  // channels_last [2, 3, 1, 2] has the same order in memory as [2, 2, 3].
  std::vector<uint16_t> halves;
  for (const float x : last) halves.push_back(to_bf16(x));
  std::vector<double> half_sums(metrics.size());
  metrics.add(view(DType::bf16, {2, 3, 1, 2}, halves, Layout::channels_last),
              view(DType::i32, {2, 1, 2}, targets), half_sums);
  CHECK(metrics.confusion_matrix(half_sums) == expected);
}

TEST_CASE("mae and r2 are scikit-learn's, with targets far from 0, too") {
  // r2_score([[0.5, 1], [-1, 1], [7, -6]], [[0, 2], [-1, 2], [8, -5]], multioutput="raw_values") is
  // [0.96543779, 0.90816327] in scikit-learn's documentation.
  for (const float offset : {0.0F, 4096.0F}) {
    std::vector<float> targets = {0.5, 1, -1, 1, 7, -6}, outputs = {0, 2, -1, 2, 8, -5};
    for (auto* values : {&targets, &outputs})
      for (float& x : *values) x += offset;
    const EvaluationMetrics metrics({.names = {"mae", "r2"}, .origin = {targets[0], targets[1]}});
    std::vector<double> sums(metrics.size());
    metrics.add(view(DType::f32, {3, 2}, outputs), view(DType::f32, {3, 2}, targets), sums);
    const auto values = metrics.values(sums, 0);
    // All numbers are multiples of 0.5 that doubles hold; only quotients are rounded.
    CHECK(value(values, "mae") == doctest::Approx(0.75).epsilon(1e-15));
    const double first = 1 - 1.25 / (0.25 + 1 + 49 - 6.5 * 6.5 / 3);
    const double second = 1 - 3.0 / (1 + 1 + 36 - 4 * 4 / 3.0);
    CHECK(value(values, "r2") == doctest::Approx((first + second) / 2).epsilon(1e-14));
    CHECK(first == doctest::Approx(0.96543779).epsilon(1e-8));  // its digits
    CHECK(second == doctest::Approx(0.90816327).epsilon(1e-8));
  }
}

TEST_CASE("mse, rmse and mape are scikit-learn's, in the units of the data") {
  // In the data: targets 10, 1000; 30, 4000. Predictions 20, 1000; 30, 3000.
  std::vector<float> targets = {0, 0, 2, 3}, outputs = {1, 0, 2, 2};
  const EvaluationMetrics metrics({.names = {"mae", "mse", "rmse", "mape"},
                                   .origin = {0, 0},
                                   .units = {10, 1000},
                                   .zeros = {10, 1000}});
  std::vector<double> sums(metrics.size());
  metrics.add(view(DType::f32, {2, 2}, outputs), view(DType::f32, {2, 2}, targets), sums);
  const auto values = metrics.values(sums, 0);
  CHECK(value(values, "mae") == (5.0 + 500) / 2);
  CHECK(value(values, "mse") == (50.0 + 500'000) / 2);
  CHECK(value(values, "rmse") ==
        doctest::Approx((std::sqrt(50.0) + std::sqrt(500'000.0)) / 2).epsilon(1e-14));
  CHECK(value(values, "mape") == (0.5 + 0.125) / 2);
}

TEST_CASE("mape of standardized targets is scikit-learn's, also where a target is 0") {
  constexpr double kMean = 180921.195890411, kStd = 79415.2918860;
  const EvaluationMetrics metrics(
      {.names = {"mape"}, .origin = {0}, .units = {kStd}, .zeros = {static_cast<float>(kMean)}});
  for (const double number : {0.0, 0.5, -3.5, 100.0, 180921.0, 98765.0, -1e6}) {
    CAPTURE(number);
    std::vector<float> targets = {static_cast<float>((number - kMean) / kStd)};
    std::vector<float> outputs = {targets[0] + 1};  // rounded to 2^-24 of up to 50
    std::vector<double> sums(metrics.size());
    metrics.add(view(DType::f32, {1, 1}, outputs), view(DType::f32, {1, 1}, targets), sums);
    const double divisor = std::max(std::abs(number), std::numeric_limits<double>::epsilon());
    CHECK(value(metrics.values(sums, 0), "mape") == doctest::Approx(kStd / divisor).epsilon(1e-5));
  }
  for (float wrong : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    float output = 1;
    std::vector<float> targets = {wrong}, outputs = {output};
    std::vector<double> sums(metrics.size());
    metrics.add(view(DType::f32, {1, 1}, outputs), view(DType::f32, {1, 1}, targets), sums);
    CHECK(std::isnan(value(metrics.values(sums, 0), "mape")));
  }
}

TEST_CASE("mae is in the units of the data, each column's by its own standard deviation") {
  std::vector<float> targets = {0, 1, -1, 1}, outputs = {0.5, 1, -1, 3};
  const EvaluationMetrics metrics({.names = {"mae", "r2"}, .origin = {0, 1}, .units = {1000, 3}});
  std::vector<double> sums(metrics.size());
  metrics.add(view(DType::f32, {2, 2}, outputs), view(DType::f32, {2, 2}, targets), sums);
  // The columns' mean errors are 0.25 and 1.
  CHECK(value(metrics.values(sums, 0), "mae") == (0.25 * 1000 + 1 * 3) / 2);
}

TEST_CASE("a run gives the mae of standardized targets in the units of the file") {
  // One target in thousands and one in hundredths, each by its own standard deviation; the net's
  // outputs are 0, so that it predicts the means.
  const Folder folder;
  constexpr int kRows = 12;
  constexpr double kPrice = 7000, kRate = 0.25;
  std::string text = "a,price,rate\n";
  double prices = 0, rates = 0, squares = 0, rate_squares = 0, relative = 0;
  for (int i = 0; i < kRows; ++i) {
    const int price = 5000 + 200 * (i * 7 % kRows), rate = 10 + i * 5 % kRows;
    text += fmt::format("{},{},0.{}\n", i, price, rate);
    prices += std::abs(price - kPrice) / kRows;
    rates += std::abs(rate / 100.0 - kRate) / kRows;
    squares += (price - kPrice) * (price - kPrice) / kRows;
    rate_squares += (rate / 100.0 - kRate) * (rate / 100.0 - kRate) / kRows;
    relative += (std::abs(price - kPrice) / price + std::abs(rate - 100 * kRate) / rate) / kRows;
  }
  folder.write("rows.csv", text);
  const std::string spec = fmt::format(R"(
data:
  dataset: {{csv: {{path: {0}/rows.csv, test_path: {0}/rows.csv, targets: [price, rate]}}}}
  transforms: [{{scale: 0}}]
  target_transforms: [{{standardize: {{mean: [7000, 0.25], std: [1500, 0.03]}}}}]
  batch_size: 4
model: [{{linear: {{out_features: 2, bias: false}}}}]
loss: l1_loss
optimizer: {{sgd: 0.1}}
epochs: 1
cores: 1
evaluate: {{metrics: [mae, rmse, mape]}}
)",
                                       folder.path());
  const Ran ran = run_spec(spec);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const auto number = [&](const std::string& key) {
    const size_t at = ran.metrics.find("\"" + key + "\": ");
    REQUIRE_MESSAGE(at != ran.metrics.npos, ran.metrics);
    return std::stod(ran.metrics.substr(at + key.size() + 4));
  };
  // Targets are rounded to float32 after the division, 2^-24 relative.
  CHECK(number("test.mae") == doctest::Approx((prices + rates) / 2).epsilon(1e-6));
  CHECK(number("test.rmse") ==
        doctest::Approx((std::sqrt(squares) + std::sqrt(rate_squares)) / 2).epsilon(1e-6));
  CHECK(number("test.mape") == doctest::Approx(relative / 2).epsilon(1e-6));
  CHECK(number("test.loss") == doctest::Approx((prices / 1500 + rates / 0.03) / 2).epsilon(1e-6));
}

TEST_CASE("r2 of constant targets is 1 or 0, and of one sample undefined") {
  const auto r2 = [](std::vector<float> outputs, std::vector<float> targets) {
    const EvaluationMetrics metrics({.names = {"r2"}, .origin = {targets[0]}});
    std::vector<double> sums(metrics.size());
    const Shape shape{std::ssize(targets), 1};
    metrics.add(view(DType::f32, shape, outputs), view(DType::f32, shape, targets), sums);
    return metrics.values(sums, 0)[0].value;
  };
  CHECK(r2({3, 3}, {3, 3}) == 1);
  CHECK(r2({3, 4}, {3, 3}) == 0);
  CHECK(std::isnan(r2({3}, {3})));
}

TEST_CASE("perplexity is the exponential of the loss") {
  const EvaluationMetrics metrics({.names = {"perplexity"}, .classes = 4});
  CHECK(metrics.size() == 0);  // no outputs are needed
  CHECK(value(metrics.values({}, 1.5), "perplexity") == std::exp(1.5));
}

// The error of a spec with these overrides.
std::string refused(const Words& words) {
  const Ran ran = run_spec(kFiveSteps, with({"cores=1", "save=true", "steps=1"}, words));
  CHECK(ran.code == 2);
  return ran.err;
}

TEST_CASE("metrics that do not fit the loss are refused") {
  CHECK(has(refused({"evaluate.metrics=[mae]"}), "mae is for losses that compare numbers"));
  CHECK(has(refused({"evaluate.metrics=[top11]"}), "top11 needs at least 11 classes"));
  CHECK(has(refused({"evaluate.metrics=[perplexity]", "loss={cross_entropy: {reduction: sum}}"}),
            "perplexity is the exponential of the mean cross entropy"));
  CHECK(has(refused({"evaluate.metrics=[f1]", "data.target_transforms=[one_hot]", "loss=mse_loss"}),
            "f1 needs class targets and a loss such as"));
  CHECK(has(refused({"save.best=r2"}), "r2 is for losses that compare numbers"));
  CHECK(has(refused({"evaluate=false", "save.best=loss"}), "'save.best' needs evaluations"));
  CHECK(has(refused({"evaluate=false", "early_stop=2"}), "'early_stop' needs evaluations"));
  CHECK(has(refused({"evaluate=false", "early_stop=2"}), "`early_stop=none` trains without"));
}

TEST_CASE("what best weights and early stopping need is evaluated, too") {
  const auto names = [](const Words& words) {
    return session_of(kFiveSteps, with({"cores=1"}, words))->metrics.names();
  };
  CHECK(names({}) == Words{"accuracy"});
  CHECK(names({"save.best=f1"}) == Words{"accuracy", "f1"});
  CHECK(names({"evaluate.metrics=[loss, top5]", "early_stop={patience: 2, metric: accuracy}"}) ==
        Words{"top5", "accuracy"});
  CHECK(names({"evaluate=false"}).empty());
}

}  // namespace
}  // namespace dpt
