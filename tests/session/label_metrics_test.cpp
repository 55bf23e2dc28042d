// Metrics of labels that are 0 or 1 against scikit-learn's numbers, in tests/fixtures.
#include "session/label_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/resumed_run.h"
#include "data/folder.h"
#include "layers/golden.h"
#include "session/session.h"

namespace dpt {
namespace {

// Means over labels, and the values of each label.
const std::vector<std::string> kNames = {"accuracy", "precision", "recall", "f1", "auc"};

TensorView view(const Shape& shape, std::vector<float>& values) {
  return {{DType::f32, shape, Layout::plain}, reinterpret_cast<std::byte*>(values.data())};
}

std::vector<float> floats(const Node& list) {
  std::vector<float> out;
  for (const Node& item : list.items) out.push_back(static_cast<float>(golden::number(item)));
  return out;
}

double value(const std::vector<NamedValue>& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &NamedValue::name);
  REQUIRE_MESSAGE(found != values.end(), name);
  return found->value;
}

struct LabelValues {
  std::vector<NamedValue> means, by_label;
};

// The samples in shards of these sizes, each of which adds them one by one, or all at once.
LabelValues evaluated(std::vector<float> scores, std::vector<float> targets, int64_t labels,
                      const std::vector<int64_t>& sizes, bool at_once, float threshold = 0) {
  const EvaluationMetrics metrics(
      {.names = kNames,
       .labels = {.labels = labels, .threshold = threshold, .positions = std::ranges::max(sizes)}});
  std::vector<std::vector<double>> shards;
  size_t row = 0;
  const auto width = static_cast<size_t>(labels);
  for (const int64_t size : sizes) {
    std::vector<double>& shard = shards.emplace_back(metrics.size());
    for (int64_t done = 0; done < size;) {
      const int64_t rows = at_once ? size : 1;
      std::vector<float> y(&scores[row * width],
                           &scores[row * width] + static_cast<size_t>(rows) * width);
      std::vector<float> t(&targets[row * width],
                           &targets[row * width] + static_cast<size_t>(rows) * width);
      metrics.add(view({rows, labels}, y), view({rows, labels}, t), shard);
      row += static_cast<size_t>(rows);
      done += rows;
    }
  }
  REQUIRE(row * width == scores.size());
  std::vector<double> sums(metrics.summed());
  std::vector<std::span<const double>> all;
  for (const std::vector<double>& shard : shards) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += shard[i];
    all.emplace_back(shard);
  }
  return {metrics.values(sums, 0, all), metrics.by_label(sums, all)};
}

TEST_CASE("accuracy, precision, recall, f1 and auc of labels are scikit-learn's") {
  const golden::Document doc = golden::read_fixture("label_metrics");
  for (const Node& c : golden::at(doc.root, "cases").items) {
    CAPTURE(golden::at(c, "name").text);
    const std::vector<float> scores = floats(golden::at(c, "scores"));
    const std::vector<float> targets = floats(golden::at(c, "targets"));
    const Node &means = golden::at(c, "means"), &by_label = golden::at(c, "by_label");
    const auto labels = std::ssize(golden::at(by_label, "f1").items);
    const int64_t samples = std::ssize(scores) / labels;
    const LabelValues all = evaluated(scores, targets, labels, {samples}, true);
    for (const std::string& name : kNames) {
      CAPTURE(name);
      // Quotients of the same counts; scikit-learn's ROC AUC sums areas of trapezoids in double,
      // one for each of at most 57 scores, with an error of at most one unit in the last place
      // each.
      CHECK(value(all.means, name) ==
            doctest::Approx(golden::number(golden::at(means, name))).epsilon(1e-14));
      for (int64_t l = 0; l < labels && labels > 1; ++l) {
        const double found = value(all.by_label, fmt::format("{}.{}", name, l));
        const double expected = golden::number(golden::at(by_label, name).items[l]);
        CHECK(std::isnan(found) == std::isnan(expected));
        if (!std::isnan(expected)) CHECK(found == doctest::Approx(expected).epsilon(1e-14));
      }
    }
    CHECK(all.by_label.empty() == (labels == 1));
    // All numbers are counted exactly, so other shards give the same bits.
    for (const auto& sizes :
         {std::vector<int64_t>{20, 0, samples - 20}, std::vector<int64_t>{1, samples - 3, 1, 1}})
      for (const bool at_once : {false, true}) {
        const LabelValues split = evaluated(scores, targets, labels, sizes, at_once);
        for (const NamedValue& v : all.means) CHECK(value(split.means, v.name) == v.value);
        for (const NamedValue& v : all.by_label)
          if (!std::isnan(v.value)) CHECK(value(split.by_label, v.name) == v.value);
      }
  }
}

TEST_CASE("probabilities predict a label above one half, and soft targets have it above one half") {
  const LabelValues found =
      evaluated({0.5F, 0.6F, 0.2F, 0.9F}, {1, 0.75F, 0.25F, 0.5F}, 1, {4}, true, 0.5F);
  CHECK(value(found.means, "accuracy") == 0.5);  // right: the second and the third
  CHECK(value(found.means, "precision") == 0.5);
  CHECK(value(found.means, "recall") == 0.5);
  CHECK(value(found.means, "auc") == 0.5);  // of four pairs, those with the 0.2 are in order
}

TEST_CASE("signed zeros are equal scores, infinities are ordered, and a NaN leaves no auc") {
  const float inf = std::numeric_limits<float>::infinity();
  const auto auc = [](std::vector<float> scores, std::vector<float> targets) {
    const int64_t samples = std::ssize(scores);
    return value(evaluated(std::move(scores), std::move(targets), 1, {samples}, true).means, "auc");
  };
  CHECK(auc({-0.0F, 0.0F}, {1, 0}) == 0.5);
  CHECK(auc({inf, -inf, 3, -3}, {1, 0, 1, 0}) == 1);
  CHECK(auc({-inf, inf, -3, 3}, {1, 0, 1, 0}) == 0);
  CHECK(std::isnan(auc({1, std::nanf(""), 2}, {1, 0, 1})));
}

TEST_CASE("labels are dimension 1 of an output, as in torchmetrics") {
  // [2, 2, 1, 2]: two samples, two labels, two pixels; the same as [4, 2] with labels last.
  std::vector<float> y = {1, -1, 2, 3, -4, 5, 6, -7}, t = {1, 0, 0, 1, 0, 0, 1, 1};
  const EvaluationMetrics metrics({.names = kNames, .labels = {.labels = 2, .positions = 4}});
  std::vector<double> shard(metrics.size());
  metrics.add(view({2, 2, 1, 2}, y), view({2, 2, 1, 2}, t), shard);
  const LabelValues last =
      evaluated({1, 2, -1, 3, -4, 6, 5, -7}, {1, 0, 0, 1, 0, 1, 0, 1}, 2, {4}, true);
  for (const NamedValue& v : metrics.values(shard, 0)) CHECK(value(last.means, v.name) == v.value);
  for (const NamedValue& v : metrics.by_label(shard))
    CHECK(value(last.by_label, v.name) == v.value);
}

// Three labels of 61 rows.
std::string table(const Folder& folder) {
  std::string text = "a,b,cat,dog,bird\n";
  for (int i = 0; i < 61; ++i)
    text += fmt::format("{},{},{},{},{}\n", i * 7 % 13 - 6, i * 5 % 11 - 5, i * 7 % 13 > 7 ? 1 : 0,
                        i * 5 % 11 > 5 ? 1 : 0, i % 3 == 0 ? 1 : 0);
  folder.write("rows.csv", text);
  return fmt::format(R"(
data:
  dataset: {{csv: {{path: {}/rows.csv, targets: [cat, dog, bird]}}}}
  validation: 0.5
  batch_size: 8
model: [{{linear: 12}}, relu, {{linear: 3}}]
loss: bce_with_logits_loss
optimizer: {{adam: 0.05}}
epochs: 3
reproducible: 4
evaluate: {{metrics: [accuracy, precision, recall, f1, auc], batch_size: 7}}
)",
                     folder.path());
}

// The numbers of evaluations in metrics.jsonl: all of each line from the first one on.
std::string evaluations(const std::string& metrics) {
  std::string out;
  for (size_t at = metrics.find("\"validation.loss"); at != metrics.npos;
       at = metrics.find("\"validation.loss", at + 1))
    out += metrics.substr(at, metrics.find("\"evaluation_seconds", at) - at) + "\n";
  return out;
}

TEST_CASE("metrics of labels have the same bits in every mode") {
  const Folder folder;
  const std::string spec = table(folder);
  const Ran one = run_spec(spec, {"cores=1"});
  REQUIRE_MESSAGE(one.code == 0, one.err);
  const std::string expected = evaluations(one.metrics);
  CHECK_MESSAGE(has(expected, "\"validation.auc.dog\":"), one.metrics);
  CHECK(has(one.out, "Validation accuracy: "));
  CHECK(has(one.out, "Validation auc: 0."));
  CHECK(!has(one.out, "auc.dog"));
  std::vector<std::vector<std::string>> modes = {
      {"cores=3"}, {"cores=1", "parallel=dp", "devices=2"}, {"cores=1", "model[2].device=1"}};
  if (kCanFork) modes.push_back({"cores=1", "parallel=ddp", "devices=2"});
  for (const auto& mode : modes) {
    CAPTURE(mode[0]);
    const Ran ran = run_spec(spec, mode);
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    CHECK(evaluations(ran.metrics) == expected);
  }
}

TEST_CASE("weights are kept and runs stopped by the metric of one label") {
  const Folder folder;
  const std::string spec = table(folder);
  const Ran ran = run_spec(spec, {"save.best=auc.dog", "early_stop={patience: 9, metric: f1.cat}"});
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const auto error = [&](const std::string& word) { return run_spec(spec, {word}).err; };
  CHECK(has(error("save.best=f1.horse"),
            "f1.horse: there is no label 'horse'; the labels are: cat, dog, bird"));
  CHECK(has(error("evaluate.metrics=[top5]"),
            "for bce_with_logits_loss there are accuracy, precision, recall, f1 and auc"));
}

TEST_CASE("classes have precision and recall, and metrics of one class") {
  // Predicted: 0 2 1 0 0 1. Of class 0 both are found, with one more prediction.
  std::vector<int32_t> targets = {0, 1, 2, 0, 1, 2};
  std::vector<float> scores(18);
  const std::vector<size_t> predicted = {0, 2, 1, 0, 0, 1};
  for (size_t i = 0; i < 6; ++i) scores[i * 3 + predicted[i]] = 1;
  for (const bool matrix : {false, true}) {
    std::vector<std::string> names = {"precision", "recall", "recall.cat", "precision.cat", "f1.2"};
    if (matrix) names.emplace_back("confusion_matrix");
    const EvaluationMetrics metrics({.names = names, .classes = 3, .label_names = {"cat"}});
    std::vector<double> sums(metrics.size());
    metrics.add(view({6, 3}, scores),
                {{DType::i32, {6}, Layout::plain}, reinterpret_cast<std::byte*>(targets.data())},
                sums);
    const auto values = metrics.values(sums, 0);
    // precision_score and recall_score(average="macro") of scikit-learn's documentation: 0.22, 0.33
    CHECK(value(values, "precision") == doctest::Approx(2.0 / 9).epsilon(1e-15));
    CHECK(value(values, "recall") == doctest::Approx(1.0 / 3).epsilon(1e-15));
    CHECK(value(values, "recall.cat") == 1);
    CHECK(value(values, "precision.cat") == doctest::Approx(2.0 / 3).epsilon(1e-15));
    CHECK(value(values, "f1.2") == 0);
    CHECK(metrics.by_label(sums).empty());
  }
  const auto error = [&](const std::string& word) { return run_spec(kFiveSteps, {word}).err; };
  CHECK(has(error("evaluate.metrics=[f1.77]"), "f1.77: there is no class '77'"));
  CHECK(has(error("evaluate.metrics=[accuracy.7]"), "write recall.7"));
}

TensorView classes_view(std::vector<int32_t>& targets) {
  return {{DType::i32, {std::ssize(targets)}, Layout::plain},
          reinterpret_cast<std::byte*>(targets.data())};
}

TEST_CASE("auc of two classes is that of the score of class 1") {
  // z1 - z0 is -1, 2, 2, 5, 0.5; the targets equal those of labels.
  std::vector<float> scores = {0, -1, 1, 3, -1, 1, 0, 5, 0, 0.5};
  std::vector<int32_t> targets = {0, 1, 0, 1, 0};
  const LabelValues labels = evaluated({-1, 2, 2, 5, 0.5}, {0, 1, 0, 1, 0}, 1, {5}, true);
  for (const bool others : {false, true}) {
    std::vector<std::string> names = {"auc", "auc.no", "auc.yes"};
    if (others) names.insert(names.end(), {"f1", "top1", "confusion_matrix"});
    const EvaluationMetrics metrics({.names = names,
                                     .classes = 2,
                                     .labels = {.labels = 1, .positions = 5},
                                     .label_names = {"no", "yes"}});
    std::vector<double> shard(metrics.size());
    metrics.add(view({5, 2}, scores), classes_view(targets), shard);
    const auto values = metrics.values(shard, 0);
    for (const std::string name : {"auc", "auc.no", "auc.yes"})
      CHECK(value(values, name) == value(labels.means, "auc"));
    if (others) CHECK(value(values, "top1") == 0.6);
    CHECK(metrics.by_label(shard).empty());
  }
}

TEST_CASE("auc of several classes is the mean over each against the others") {
  // The third and the second last sample have the same probability of class 2, 1 / (2 + e), which
  // counts half. scikit-learn: y = [0, 1, 2, 2, 0, 1], p = softmax(z),
  // roc_auc_score(y, p, multi_class="ovr", average="macro"), and roc_auc_score(y == c, p[:, c]).
  std::vector<float> scores = {2, 1, 0, 0, 1, 3, 1, 1, 4, 3, 2, 2, 1, 2, 1, 0, 2, 5};
  std::vector<int32_t> targets = {0, 1, 2, 2, 0, 1};
  const EvaluationMetrics metrics({.names = {"auc", "auc.0", "auc.1", "auc.2"},
                                   .classes = 3,
                                   .labels = {.labels = 3, .positions = 6}});
  std::vector<double> shard(metrics.size());
  metrics.add(view({6, 3}, scores), classes_view(targets), shard);
  const auto values = metrics.values(shard, 0);
  CHECK(value(values, "auc.0") == 14.0 / 16);
  CHECK(value(values, "auc.1") == 4.0 / 16);
  CHECK(value(values, "auc.2") == 9.0 / 16);
  CHECK(value(values, "auc") ==
        doctest::Approx((14.0 / 16 + 4.0 / 16 + 9.0 / 16) / 3).epsilon(1e-15));
}

TEST_CASE("scores far from 0 keep their order where probabilities would be 1") {
  std::vector<float> scores = {0, 100, 0, 200, 50, 0, 300, 0};
  std::vector<int32_t> targets = {0, 1, 1, 0};
  const EvaluationMetrics metrics(
      {.names = {"auc"}, .classes = 2, .labels = {.labels = 1, .positions = 4}});
  std::vector<double> shard(metrics.size());
  metrics.add(view({4, 2}, scores), classes_view(targets), shard);
  CHECK(value(metrics.values(shard, 0), "auc") == 0.75);
  scores[0] = std::nanf("");
  std::vector<double> other(metrics.size());
  metrics.add(view({4, 2}, scores), classes_view(targets), other);
  CHECK(std::isnan(value(metrics.values(other, 0), "auc")));
}

TEST_CASE("auc of classes has the same bits in every mode") {
  const std::string spec = kFiveSteps;
  const Words wanted = {"evaluate={metrics: [accuracy, auc, f1, auc.3], batch_size: 4}",
                        "reproducible=4", "data.dataset.test_samples=61",
                        "model=[flatten, {linear: 9}, relu, {linear: 10}]"};
  const auto found = [&](const Words& mode) {
    const Ran ran = run_spec(spec, with(wanted, mode));
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    std::string out;
    for (size_t at = ran.metrics.find("\"test.auc"); at != ran.metrics.npos;
         at = ran.metrics.find("\"test.auc", at + 1))
      out += ran.metrics.substr(at, ran.metrics.find(',', at) - at) + "\n";
    return out;
  };
  const std::string expected = found({"cores=1"});
  CHECK(has(expected, "test.auc.3"));
  CHECK(found({"cores=3"}) == expected);
  CHECK(found({"cores=1", "parallel=dp", "devices=2"}) == expected);
  if (kCanFork) CHECK(found({"cores=1", "parallel=ddp", "devices=2"}) == expected);
}

TEST_CASE("auc is possible for the losses of classes that train probabilities") {
  const auto error = [&](const Words& words) { return run_spec(kFiveSteps, words).err; };
  CHECK(error({"steps=1", "evaluate.metrics=[auc]"}).find("error") == std::string::npos);
  CHECK(error({"steps=1", "evaluate.metrics=[auc]", "save.best=auc"}).find("error") ==
        std::string::npos);
  CHECK(has(error({"evaluate.metrics=[auc]", "loss=multi_margin_loss"}),
            "auc of more than two classes needs a loss that trains probabilities, such as "
            "cross_entropy, not multi_margin_loss"));
  CHECK(has(error({"evaluate.metrics=[auc.cat]"}), "auc.cat: there is no class 'cat'"));
}

}  // namespace
}  // namespace dpt
