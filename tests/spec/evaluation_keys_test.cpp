// The keys of validation, evaluation, best weights and early ends.
#include <string>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "small_registries.h"
#include "spec/metric_name.h"
#include "spec/spec.h"

namespace dpt {
namespace {

using test::Read;
using test::with_rest;

Read with_data(const std::string& validation) {
  return Read("data: {dataset: fashion_mnist, batch_size: 8, validation: " + validation +
              "}\nmodel: [linear: 10]\nloss: cross_entropy\noptimizer: {adam: 0.01}\n");
}

TEST_CASE("data.validation is a fraction or a data set") {
  const Read fraction = with_data("0.1");
  CHECK(fraction.d.render() == "");
  CHECK(fraction.spec.data.validation.fraction == 0.1);
  CHECK(fraction.spec.data.validation.on());
  const Read set = with_data("fashion_mnist");
  CHECK(set.d.render() == "");
  REQUIRE(set.spec.data.validation.dataset);
  CHECK(set.spec.data.validation.dataset.what->name == "fashion_mnist");
  CHECK(!with_data("none").spec.data.validation.on());
  for (const char* wrong : {"0", "1", "1.5", "-0.1"})
    CHECK(has(with_data(wrong).d.render(), "between 0 and 1, such as 0.1, or a data set"));
  CHECK(has(with_data("fashion").d.render(), "unknown dataset 'fashion'"));
}

TEST_CASE("evaluate: every_steps, and metrics by name") {
  const Read r(with_rest("evaluate: {every_steps: 50, metrics: [top5, f1]}\n"));
  CHECK(r.d.render() == "");
  CHECK(r.spec.evaluate.every_steps == 50);
  REQUIRE(r.spec.evaluate.metrics.size() == 2);
  CHECK(r.spec.evaluate.metrics[0].value == "top5");
  CHECK(r.spec.evaluate.metrics[1].where.column > 30);
  CHECK(Read(with_rest("evaluate: {metrics: mae}\n")).spec.evaluate.metrics[0].value == "mae");
  const auto error = [](const std::string& text) { return Read(with_rest(text)).d.render(); };
  CHECK(has(error("evaluate: {metrics: [accurracy]}\n"), "did you mean 'accuracy'"));
  CHECK(has(error("evaluate: {metrics: [f1, f1]}\n"), "metric 'f1' is named twice"));
  CHECK(has(error("evaluate: {metrics: [{f1: 1}]}\n"), "must be a list of names"));
  CHECK(has(error("evaluate: {every: 2, every_steps: 5}\n"), "cannot be used together"));
}

TEST_CASE("save.best, early_stop and minutes") {
  const Read r(
      with_rest("save: {best: accuracy}\nearly_stop: {patience: 3, metric: f1, min_delta: 0.01}\n"
                "minutes: 0.5\n"));
  CHECK(r.d.render() == "");
  CHECK(r.spec.save.best == "accuracy");
  CHECK(r.spec.early_stop.patience == 3);
  CHECK(r.spec.early_stop.metric == "f1");
  CHECK(r.spec.early_stop.min_delta == 0.01);
  CHECK(r.spec.minutes == 0.5);
  CHECK(Read(with_rest("early_stop: 5\n")).spec.early_stop.patience == 5);
  CHECK(Read(with_rest("save: {best: none}\n")).spec.save.best == "none");
  CHECK(Read(with_rest("save: {best: null}\n")).spec.save.best.empty());
  CHECK(Read(with_rest("early_stop: none\nminutes: none\n")).d.ok());
  const auto error = [](const std::string& text) { return Read(with_rest(text)).d.render(); };
  CHECK(has(error("save: {best: confusion_matrix}\n"),
            "'best' must be a metric with one number: loss, accuracy, topK (such as top5), "
            "precision, recall, f1, auc, perplexity, mae, mse, rmse, mape or r2, also with the "
            "evaluated set, as in "
            "validation.loss\n"));
  CHECK(has(error("early_stop: {patience: 3, metric: val_loss}\n"),
            "in validation.loss; did you mean 'validation.loss'?"));
  CHECK(Read(with_rest("save: {best: test.f1}\nearly_stop: {patience: 3, metric: test.loss}\n"
                       "evaluate: true\n"))
            .d.render()
            .empty());
  CHECK(has(error("early_stop: {patience: 2, metric: acc}\n"), "must be a metric with one"));
  CHECK(has(error("early_stop: 0\n"), "must be positive"));
  CHECK(has(error("minutes: 0\n"), "must be positive"));
}

TEST_CASE("names of version 0.1.0 have current ones") {
  for (const auto& [before, now] : {std::pair("test_accuracy", "test.accuracy"),
                                    {"validation_loss", "validation.loss"},
                                    {"val_loss", "validation.loss"},
                                    {"last_test_loss", "test.loss"},
                                    {"last_loss", "loss"},
                                    {"best_validation_accuracy", "best.validation.accuracy"},
                                    {"best.test_f1", "best.test.f1"},
                                    {"test.loss", "test.loss"},
                                    {"accuracy", "accuracy"},
                                    {"samples_per_second", "samples_per_second"},
                                    {"data_wait", "data_wait"},
                                    {"test_samples", "test_samples"},
                                    {"seconds", "seconds"}})
    CHECK(current_name(before) == now);
}

TEST_CASE("metric names: direction, set and K") {
  for (const char* name :
       {"loss", "perplexity", "mae", "mse", "validation.loss", "test.rmse", "mape"})
    CHECK(lower_is_better(name));
  for (const char* name : {"accuracy", "top5", "f1", "r2", "validation.f1", "train.accuracy"})
    CHECK(!lower_is_better(name));
  CHECK(without_set("validation.f1") == "f1");
  CHECK(without_set("f1") == "f1");
  CHECK(set_of("validation.f1") == "validation");
  CHECK(set_of("step.loss") == "");
  CHECK(is_share("best.test.top5"));
  CHECK(lower_is_better("best.test.loss"));
  CHECK(top_k("top5") == 5);
  CHECK(top_k("top12") == 12);
  for (const char* name : {"top", "top0", "top05", "top5x", "topx", "loss", "top-1"})
    CHECK(top_k(name) == 0);
}

}  // namespace
}  // namespace dpt
