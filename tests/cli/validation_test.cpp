// Commands on a run with a validation set: eval, runs, compare, check and bench.
#include <string>

#include <doctest/doctest.h>

#include "cli/process.h"

namespace dpt {
namespace {

constexpr const char* kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 120, test_samples: 30, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
  validation: 0.25
model: [flatten, {linear: 16}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.03}
epochs: 4
evaluate: {every_steps: 6, metrics: [accuracy, f1, confusion_matrix]}
save: {best: accuracy}
early_stop: 50
)";

// What follows `before` on its line, up to `until`.
std::string between(const std::string& text, const std::string& before, const std::string& until) {
  const size_t begin = text.find(before);
  REQUIRE_MESSAGE(begin != text.npos, text);
  const size_t from = begin + before.size();
  return text.substr(from, text.find(until, from) - from);
}

TEST_CASE("the commands understand a run with a validation set") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto run = [&](const std::vector<std::string>& words) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, (f.out + f.err));
    return f;
  };
  const Finished trained = run({"t.yaml", "cores=1"});
  const std::string best = between(trained.err, "best validation accuracy ", " in epoch");

  // The final line has the numbers of the best weights.
  const Finished test = run({"eval", "t.yaml", "cores=1", "--weights", "best"});
  CHECK(between(test.out, "Accuracy: ", "\n") ==
        between(trained.out.substr(trained.out.find("Test loss")), "Accuracy: ", " (best"));
  CHECK(has(test.out, "\nactual,0,1,2,"));
  const Finished own =
      run({"eval", "t.yaml", "cores=1", "--weights", "best", "--set", "validation"});
  const double percent = std::stod(between(own.out, "Validation accuracy: ", " %"));
  CHECK(percent == doctest::Approx(100 * std::stod(best)).epsilon(1e-4));  // as printed

  const Finished runs = run({"runs", "--json", "runs"});
  CHECK(std::stod(between(runs.out, "\"best_validation_accuracy\": ", ",")) ==
        doctest::Approx(std::stod(best)).epsilon(1e-3));  // four digits are printed
  CHECK(std::stod(between(runs.out, "\"last_test_loss\": ", ",")) ==
        doctest::Approx(std::stod(between(test.out, "Test loss: ", ","))).epsilon(1e-5));
  run({"compare", "runs/t/1", "runs/t/1"});
  run({"check", "t.yaml"});
  run({"bench", "t.yaml", "--modes", "single", "--rounds", "1", "--seconds", "0.01"});
}

TEST_CASE("a run that early_stop ended is finished, until it is continued") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::vector<std::string> words = {"t.yaml", "epochs=40", "evaluate.every_steps=null",
                                          "early_stop={patience: 2, min_delta: 5}", "out=runs/t/1"};
  const auto state = [&] {
    const Finished f = dptrain({"runs", "--csv", "runs"}, {}, folder.path());
    return between(f.out.substr(f.out.find('\n')), "\n", "\n");
  };
  REQUIRE(dptrain(words, {}, folder.path()).code == 0);
  CHECK_MESSAGE(has(state(), ",finished"), state());
  const std::string before = read_file(folder.file("runs/t/1/metrics.jsonl"));
  CHECK(has(before, "\n{\"stopped_early\": true, \"time\": "));
  CHECK(has(read_file(folder.file("runs/t/1/report.html")), ">finished</span>"));
  // Continued for longer, and interrupted there, it is not.
  std::vector<std::string> longer = words;
  longer.insert(longer.end(), {"early_stop=20", "minutes=1e-6", "--resume", "auto"});
  const Finished more = dptrain(longer, {}, folder.path());
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(has(more.err, "Stopped after"));
  CHECK_MESSAGE(has(state(), ",stopped"), state());
  CHECK(!has(read_file(folder.file("runs/t/1/metrics.jsonl")), "stopped_early"));
}

TEST_CASE("eval says what is missing") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto error = [&](const std::vector<std::string>& words) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK(f.code != 0);
    return f.err;
  };
  REQUIRE(dptrain({"t.yaml", "save.best=none"}, {}, folder.path()).code == 0);
  CHECK(has(error({"eval", "t.yaml", "--weights", "best"}), "the run kept no best weights"));
  CHECK(has(error({"eval", "t.yaml", "data.validation=none", "--set", "validation"}),
            "the spec has no validation set"));
}

}  // namespace
}  // namespace dpt
