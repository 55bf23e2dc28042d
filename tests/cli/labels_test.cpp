// Commands on a run whose targets are labels of 0 and 1.
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/process.h"

namespace dpt {
namespace {

constexpr const char* kSpec = R"(
data:
  dataset: {csv: {path: rows.csv, targets: [cat, "red <fish>"]}}
  validation: 0.5
  batch_size: 10
model: [{linear: 8}, relu, {linear: 2}]
loss: bce_with_logits_loss
optimizer: {adam: 0.05}
epochs: 3
evaluate: {metrics: [accuracy, f1, auc]}
save: {best: auc.cat}
)";

TEST_CASE("the commands show the metrics of each label by its name") {
  const Folder folder;
  std::string rows = "a,b,cat,red <fish>\n";
  for (int i = 0; i < 60; ++i)
    rows += fmt::format("{},{},{},{}\n", i * 7 % 13 - 6, i * 5 % 11 - 5, i * 7 % 13 > 7 ? 1 : 0,
                        i % 3 == 0 ? 1 : 0);
  folder.write("rows.csv", rows);
  folder.write("t.yaml", kSpec);
  const auto run = [&](const std::vector<std::string>& words) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, (f.out + f.err));
    return f;
  };
  const Finished trained = run({"t.yaml", "cores=1", "--print", "auc.cat,best.f1.red <fish>"});
  CHECK(std::atof(trained.out.c_str()) > 0.5);
  CHECK(has(trained.err, "best validation auc.cat "));

  const Finished eval = run({"eval", "t.yaml", "cores=1", "--set", "validation"});
  CHECK(has(eval.out, ", Validation auc: "));
  CHECK_MESSAGE(has(eval.out, "\nlabel       accuracy      f1     auc\ncat "), eval.out);
  CHECK(has(eval.out, "\nred <fish>  "));
  const std::string value =
      run({"eval", "t", "--set", "validation", "--print", "validation.auc.cat"}).out;
  const Finished json = run({"eval", "t", "--set", "validation", "--json"});
  CHECK(has(json.out, "\"validation.auc.cat\": " + value.substr(0, value.size() - 1) + ","));

  // Tables for people have the means, files have all.
  CHECK(!has(run({"runs", "t"}).out, "auc.cat"));
  CHECK(has(run({"runs", "t", "--csv"}).out, ",validation.auc.cat,best.validation.auc.cat,"));
  CHECK(!has(run({"watch", "t"}).out, "auc.cat"));
  run({"report", "t"});
  const std::string page = read_file(folder.file("runs/t/1/report.html"));
  CHECK(has(page, "Last evaluation of the validation set."));
  CHECK(has(page, "red &lt;fish&gt;"));
  CHECK(has(page, "auc by label"));

  const Finished unknown = dptrain({"t.yaml", "--print", "recall.cat"}, {}, folder.path());
  CHECK(has(unknown.err, "this run has no number 'recall.cat'"));
}

}  // namespace
}  // namespace dpt
