// The numbers of metrics.jsonl by the names of users.
#include "train/run_numbers.h"

#include <cmath>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "session/session.h"
#include "spec/spec.h"

namespace dpt {
namespace {

using Strings = std::vector<std::string>;

TEST_CASE("numbers of epochs and evaluations have the last and the best value") {
  RunNumbers n;
  CHECK(!n.find("loss"));
  n.add(R"({"step": 5, "epoch": 1, "loss": 9, "grad_norms": {"a": 1}})");
  n.add(R"({"epoch": 1, "loss": 2.5, "seconds": 2, "steps": 10, "lr": 0.1, "samples_per_second": )"
        R"(100, "validation_loss": 3, "validation_accuracy": 0.75, "run": "\"test_loss\": 1"})");
  n.add(
      R"({"evaluation": 2, "step": 15, "epoch": 2, "validation_loss": 1, "validation.accuracy": 0.5})");
  n.add(
      R"({"epoch": 2, "loss": null, "seconds": 3, "steps": 10, "lr": 0.05, "samples_per_second": 50})");
  n.add(R"({"final": true, "step": 20, "epoch": 2, "test_loss": 4, "test_top5": 0.875})");
  n.add(R"({"epoch": 3, "lo)");
  n.add("");
  CHECK(n.find("epochs") == 2);
  CHECK(n.find("steps") == 20);
  CHECK(n.find("seconds") == 5);
  CHECK(n.find("samples_per_second") == doctest::Approx(70));  // 200 and 150 samples in 5 s
  CHECK(std::isnan(*n.find("loss")));
  CHECK(n.find("best.loss") == 2.5);
  CHECK(n.find("lr") == 0.05);
  CHECK(n.find("validation.loss") == 1);
  CHECK(n.find("validation.accuracy") == 0.5);
  CHECK(n.find("best.validation.accuracy") == 0.75);
  CHECK(n.find("test.top5") == 0.875);
  CHECK(!n.find("test.accuracy"));
  CHECK(n.at_epoch("validation.accuracy", 1) == 0.75);
  CHECK(!n.at_epoch("test.loss", 1));
  REQUIRE(n.reached("validation.loss", 1) != nullptr);
  CHECK(n.reached("validation.loss", 1)->epoch == 2);
  CHECK(n.reached("validation.loss", 1)->trained_s == 2);
  CHECK(n.reached("validation.accuracy", 0.7)->epoch == 1);
  CHECK(n.reached("validation.accuracy", 0.8) == nullptr);
}

TEST_CASE("names of metrics depend on what a spec evaluates") {
  const Folder folder;
  const auto spec = [&](const std::string& more) {
    const std::string path = folder.write(
        "t.yaml",
        "data: {dataset: {synthetic_images: {samples: 8, test_samples: 4, shape: [1, 2, 2]}}, "
        "transforms: [to_tensor], batch_size: 4}\nmodel: [flatten, {linear: 10}]\nloss: "
        "cross_entropy\noptimizer: {sgd: 0.1}\n" +
            more);
    std::vector<std::unique_ptr<SourceFile>> files;
    Diagnostics d;
    Spec out = load_spec(path, {}, registries(), files, d);
    REQUIRE_MESSAGE(d.ok(), d.render());
    return out;
  };
  CHECK(metrics_of(spec("")) == Strings{"loss"});
  Spec s = spec("evaluate: true\n");
  CHECK(metrics_of(s) == Strings{"loss", "test.loss", "test.accuracy"});
  CHECK(full_metric_name("accuracy", s) == "test.accuracy");
  CHECK(full_metric_name("best.accuracy", s) == "best.test.accuracy");
  CHECK(full_metric_name("train.loss", s) == "loss");
  CHECK(full_metric_name("loss", s) == "loss");
  CHECK(full_metric_name("nothing", s) == "nothing");
  s.data.validation.fraction = 0.5;
  s.evaluate.metrics = {{"f1", {}}, {"confusion_matrix", {}}};
  CHECK(metrics_of(s) ==
        Strings{"loss", "validation.loss", "validation.f1", "test.loss", "test.f1"});
  CHECK(full_metric_name("f1", s) == "validation.f1");
}

TEST_CASE("numbers are printed as they are written in metrics.jsonl") {
  CHECK(exact_number(20) == "20");
  CHECK(exact_number(0.1) == "0.1");
  CHECK(exact_number(2.30821395) == "2.30821395");
  CHECK(exact_number(NAN) == "nan");
  CHECK(exact_number(1e-7) == "1e-07");
}

}  // namespace
}  // namespace dpt
