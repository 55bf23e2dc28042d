// Warnings about specs that train, but hardly as their authors meant.
#include "train/warnings.h"

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/process.h"
#include "golden_text.h"
#include "paths.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

using Overrides = std::vector<std::string>;

// A spec with nothing to warn about: 200 samples in steps of 40, five to an epoch.
std::string spec_with(const std::string& last_layers = "",
                      const std::string& loss = "cross_entropy",
                      const std::string& more = "epochs: 10\n") {
  return "data:\n"
         "  dataset: {synthetic_images: {samples: 200, shape: [1, 4, 4]}}\n"
         "  transforms: [to_tensor]\n"
         "  batch_size: 40\n" +
         std::string(loss.find("bce") != loss.npos || loss.find("kl") != loss.npos
                         ? "  target_transforms: [one_hot]\n"
                         : "") +
         "model:\n  - flatten\n  - linear: 10\n" + last_layers + "loss: " + loss +
         "\noptimizer: {sgd: 0.1}\n" + more;
}

// What is printed for a file t.yaml on a machine with so many cores.
std::string warnings(const std::string& path, const Overrides& overrides = {}, int cores = 64) {
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Spec spec = load_spec(path, overrides, registries(), files, d, nullptr);
  const SessionQuery query{.runs = false, .sizes_only = true};
  const auto session = d.ok() ? make_session(std::move(spec), query, d) : nullptr;
  REQUIRE_MESSAGE(session, d.render());
  return render(warnings_of(*session, cores));
}

// csv: the text of t.csv beside the spec.
std::string warnings_in(const std::string& yaml, const Overrides& overrides = {}, int cores = 64,
                        const std::string& csv = "") {
  const Folder folder;
  if (!csv.empty()) folder.write("t.csv", csv);
  std::string out = warnings(folder.write("t.yaml", yaml), overrides, cores);
  const std::string path = folder.file("");
  for (size_t at = out.find(path); at != out.npos; at = out.find(path)) out.erase(at, path.size());
  return out;
}

// Samples of one input in t.csv, and a model of so many outputs.
std::string csv_spec(const std::string& targets, int outputs, const std::string& loss,
                     const std::string& more_data = "") {
  return fmt::format(
      "data:\n  dataset: {{csv: {{path: t.csv, targets: {}}}}}\n  batch_size: 2\n{}"
      "model: [{{linear: {}}}]\nloss: {}\noptimizer: {{sgd: 0.1}}\nepochs: 2\n",
      targets, more_data, outputs, loss);
}

// Data that need no files instead of those that a config takes.
Overrides without_files(const std::string& yaml) {
  if (yaml.find("dataset: fashion_mnist") != yaml.npos)
    return {"data.dataset={synthetic_images: {samples: 60000, shape: [1, 28, 28]}}"};
  if (yaml.find("dataset: {tiny_shakespeare") != yaml.npos)
    return {
        "data.dataset={synthetic_tokens: {samples: 15000, length: 64, vocabulary: 65, targets: "
        "next}}"};
  return {};
}

}  // namespace

TEST_CASE("each warning has its golden text") {
  std::string out;
  const auto add = [&](const std::string& title, const std::string& yaml,
                       const Overrides& overrides = {}, int cores = 64) {
    const std::string text = warnings_in(yaml, overrides, cores);
    CHECK_MESSAGE(!text.empty(), title);
    out += "# " + title + "\n" + text + "\n";
  };
  struct End {
    std::string loss, layer;
  };
  for (const End& e : std::vector<End>{{"cross_entropy", "softmax"},
                                       {"cross_entropy", "log_softmax"},
                                       {"cross_entropy", "sigmoid"},
                                       {"cross_entropy", "relu"},
                                       {"bce_with_logits_loss", "sigmoid"},
                                       {"bce_with_logits_loss", "softmax"},
                                       {"bce_with_logits_loss", "relu6"},
                                       {"nll_loss", "softmax"},
                                       {"nll_loss", "identity"},
                                       {"nll_loss", "sigmoid"},
                                       {"kl_div", "softmax"},
                                       {"kl_div", "identity"},
                                       {"bce_loss", "identity"},
                                       {"bce_loss", "log_softmax"}})
    add(e.loss + " after " + e.layer, spec_with("  - " + e.layer + "\n", e.loss));
  add("dropout and flatten pass on what they get",
      spec_with("  - softmax\n  - dropout: 0.5\n  - flatten\n"));
  add("the last layer stands in a block",
      spec_with("  - head\n", "cross_entropy",
                "blocks:\n  head: {layers: [relu, {linear: 10}, softmax]}\nepochs: 10\n"));
  add("a learning rate of 0", spec_with(), {"optimizer={adam: {lr: 0}}"});
  add("a batch larger than the data", spec_with(), {"data.batch_size=256"});
  add("the same with a limit", spec_with(), {"data.limit=30"});
  add("the same for each replica", spec_with(),
      {"parallel=ddp", "devices=4", "data.batch_size_per_replica=64"});
  add("more devices than cores", spec_with(), {"parallel=dp", "devices=64", "cores=1"}, 2);
  add("more threads than cores", spec_with(), {"cores=8"}, 2);
  add("more stages than cores", spec_with("  - linear: 10\n"),
      {"parallel={pipeline: {stages: 2, chunks: 2}}", "cores=1"}, 1);
  add("a warm-up of the whole run", spec_with(), {"schedule.warmup=10"});
  add("a warm-up of more steps than there are", spec_with(),
      {"schedule={one_cycle: {max_lr: 0.1}, warmup: 100}"});
  add("a warm-up of one epoch", spec_with(), {"schedule={cosine_annealing: {}, warmup: 1}"});
  add("a schedule that never begins to change", spec_with(), {"schedule={step: 30}"});
  add("a plateau of the largest loss", spec_with(), {"schedule={reduce_on_plateau: {mode: max}}"});
  add("a schedule of rprop", spec_with(), {"schedule={step: 3}", "optimizer=rprop"});
  add("an average that never begins", spec_with(), {"optimizer={asgd: {average: true}}"});
  add("a schedule of a single epoch", spec_with(), {"schedule=cosine_annealing", "epochs=1"});
  const auto add_csv = [&](const std::string& title, const std::string& yaml,
                           const std::string& csv) {
    const std::string text = warnings_in(yaml, {}, 64, csv);
    CHECK_MESSAGE(!text.empty(), title);
    out += "# " + title + "\n" + text + "\n";
  };
  add_csv("cross_entropy of one real column", csv_spec("[1]", 1, "cross_entropy"),
          "1,20.5\n2,31\n3,40\n");
  add_csv("cross_entropy of one class", csv_spec("[1], classes: 1", 1, "cross_entropy"),
          "1,0\n2,0\n3,0\n");
  add_csv("cross_entropy of a regression", csv_spec("[1, 2]", 2, "cross_entropy"),
          "1,0.5,0.5\n2,20,30\n3,4,5\n");
  add_csv("cross_entropy of negative targets", csv_spec("[1, 2]", 2, "cross_entropy"),
          "1,0.5,0.5\n2,-1,2\n3,4,5\n");
  add_csv("bce_with_logits_loss of a regression", csv_spec("[1]", 1, "bce_with_logits_loss"),
          "1,0\n2,1\n3,1.5\n");
  add_csv("soft_margin_loss of 0 and 1", csv_spec("[1]", 1, "soft_margin_loss"), "1,1\n2,0\n");
  add_csv("poisson_nll_loss of a negative number", csv_spec("[1]", 1, "poisson_nll_loss"),
          "1,4\n2,0\n3,-2\n");
  add_csv("a first line in doubt", csv_spec("[1], classes: auto", 3, "cross_entropy"),
          "5,x\n1,a\n2,b\n3,a\n4,b\n5,a\n6,b\n");
  std::string rare;
  for (int i = 0; i < 40; ++i)
    rare += std::to_string(i) + (i == 9 ? ",rare\n" : i % 2 == 0 ? ",a\n" : ",b\n");
  add_csv("a class of one sample", csv_spec("[1], classes: auto", 3, "cross_entropy"), rare);
  std::string few;
  for (int i = 0; i < 40; ++i) few += std::to_string(i) + (i < 3 ? ",few\n" : ",many\n");
  add_csv("a class that is not in the validation set",
          csv_spec("[1], classes: auto", 2, "cross_entropy", "  validation: 0.1\n"), few);
  check_golden(out, "train/golden/warnings.txt");
}

TEST_CASE("a limit that leaves classes out is named as the reason") {
  std::string text = "x,kind\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i % 7, i < 20 ? "cat" : "dog");
  const std::string spec = csv_spec("kind, classes: auto", 2, "cross_entropy", "  limit: 20\n");
  CHECK(has(warnings_in(spec, {}, 64, text),
            "at most 2 samples of 1 of the 2 classes: 'dog'; data.limit=20 takes the first 20, and "
            "samples are often in the order of their classes: raise it, or leave it out"));
}

TEST_CASE("specs that are right get no warning") {
  const auto none = [](const std::string& yaml, const Overrides& overrides = {}, int cores = 64) {
    CHECK(warnings_in(yaml, overrides, cores) == "");
  };
  none(spec_with());
  none(spec_with("  - softmax\n  - linear: 10\n"));
  none(spec_with("  - log_softmax\n", "nll_loss"));
  none(spec_with("  - log_softmax\n", "kl_div"));
  none(spec_with("  - sigmoid\n", "bce_loss"));
  none(spec_with("  - softmax\n", "bce_loss"));
  none(spec_with("", "bce_with_logits_loss"));
  // What the loss gets is no output of the softmax alone.
  none(spec_with(
      "    name: scores\n  - {softmax: null, name: p}\n  - {add: null, from: [scores, p]}\n"));
  none(spec_with("    name: scores\n  - softmax\n  - {identity: null, from: scores}\n"));
  none(spec_with("  - residual: [softmax]\n"));
  none(spec_with(), {"data.batch_size=200"});
  none(spec_with(), {"parallel=dp", "devices=2", "cores=1"}, 2);
  none(spec_with(), {"parallel=ddp", "cores=1"}, 1);  // two devices that nobody asked for
  none(spec_with(), {"schedule.warmup=9"});
  none(spec_with(), {"schedule={cosine_annealing: {}, interval: step, warmup: 5}"});
  none(spec_with(), {"schedule={cosine_annealing: {}, warmup: 1, warmup_factor: 0.1}"});
  none(spec_with(), {"schedule={step: 9}"});
  none(spec_with(), {"schedule=reduce_on_plateau"});
  const auto none_csv = [](const std::string& yaml, const std::string& csv) {
    CHECK(warnings_in(yaml, {}, 64, csv) == "");
  };
  none_csv(csv_spec("[1]", 1, "mse_loss"), "1,20.5\n2,31\n3,40\n");
  none_csv(csv_spec("[1]", 1, "bce_with_logits_loss"), "1,0\n2,1\n3,0.5\n");
  none_csv(csv_spec("[1, 2]", 2, "bce_with_logits_loss"), "1,0,1\n2,1,1\n3,0,0\n");
  none_csv(csv_spec("[1]", 1, "soft_margin_loss"), "1,-1\n2,1\n");
  none_csv(csv_spec("[1]", 1, "poisson_nll_loss"), "1,0\n2,7\n3,2\n");
  none_csv(csv_spec("[1, 2]", 2, "cross_entropy"), "1,0,1\n2,0.3,0.7\n3,1,0\n");
  // A trial of a few steps.
  none(spec_with(), {"schedule={cosine_annealing: {}, interval: step, warmup: 20}", "steps=3"});
}

TEST_CASE("no warning for any config, nor for the README's example") {
  size_t seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source_file("configs"))) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    CHECK(warnings(entry.path().string(), without_files(read_file(entry.path().string()))) == "");
    ++seen;
  }
  CHECK(seen >= 16);
  const std::string readme = read_file(source_file("README.md"));
  const std::string fence = "```yaml\n";
  const size_t begin = readme.find(fence + "data:\n");
  REQUIRE(begin != readme.npos);
  const size_t first = begin + fence.size();
  const std::string example = readme.substr(first, readme.find("```", first) - first);
  CHECK(warnings_in(example, without_files(example)) == "");
}

TEST_CASE("no_decay without a weight decay") {
  const std::string spec = spec_with("", "cross_entropy", "epochs: 10\nno_decay: [bias]\n");
  CHECK_MESSAGE(warnings_in(spec).starts_with(
                    "t.yaml:11:11: warning: no_decay changes nothing: no parameter has a weight "
                    "decay; give the optimizer or a group a weight_decay\n"),
                warnings_in(spec));
  CHECK(warnings_in(spec, {"optimizer.weight_decay=0.1"}) == "");
  CHECK(warnings_in(spec, {"parameter_groups={match: 1.weight, weight_decay: 0.1}"}) == "");
}

TEST_CASE("check and training print warnings once, on standard error, and go on") {
  const Folder folder;
  const std::string path = folder.write("t.yaml", spec_with("  - softmax\n"));
  const std::string first = path + ":8:5: warning: cross_entropy takes raw scores";
  const auto once = [&](const Finished& f) {
    CHECK(f.code == 0);
    CHECK(f.out.find("warning") == f.out.npos);
    const size_t at = f.err.find(first);
    CHECK_MESSAGE(at != f.err.npos, f.err);
    CHECK(f.err.find("warning", at + first.size()) == f.err.npos);
  };
  once(dptrain({"check", path}));
  once(dptrain({"check", path, "--no-data"}));
  const std::string out = "out=" + folder.file("run");
  once(dptrain({path, out, "epochs=1", "parallel=ddp"}));  // two ranks
}

}  // namespace dpt
