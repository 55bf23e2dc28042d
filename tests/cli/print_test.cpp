// dptrain SPEC --print and --json: numbers on standard output for shells.
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "cli/process.h"
#include "spec/node.h"

namespace dpt {
namespace {

const std::string kSmall = R"(data:
  dataset: {synthetic_images: {samples: 48, test_samples: 12, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.05}
epochs: 2
cores: 1
)";

struct Trained {
  Folder folder;
  Finished run(const std::vector<std::string>& words) const {
    folder.write("t.yaml", kSmall);
    std::vector<std::string> all = {"t.yaml"};
    all.insert(all.end(), words.begin(), words.end());
    return dptrain(all, {}, folder.path());
  }
};

TEST_CASE("--print prints numbers and nothing else on standard output") {
  const Trained t;
  const Finished one = t.run({"evaluate=true", "--print", "test.accuracy"});
  CHECK_MESSAGE(one.code == 0, one.err);
  CHECK(one.out.find_first_not_of("0123456789.") == one.out.size() - 1);
  CHECK(one.out.ends_with("\n"));
  CHECK(has(one.err, "Epoch [2/2], Loss: "));
  CHECK(has(one.err, "finished."));
  const Finished several = t.run(
      {"evaluate=true", "--print", "train.loss,accuracy,epochs,best.loss,weights.sha256,out"});
  std::istringstream words(several.out);
  std::string loss, accuracy, epochs, best, sha, out;
  words >> loss >> accuracy >> epochs >> best >> sha >> out;
  CHECK(std::stod(accuracy) == std::stod(one.out));
  CHECK(epochs == "2");
  CHECK(std::stod(best) <= std::stod(loss));
  CHECK(out == "runs/t/2");
  const std::string weights = read_file(t.folder.file("runs/t/2/model.safetensors"));
  CHECK(sha == Sha256().update(weights).hex());
  const std::string metrics = read_file(t.folder.file("runs/t/2/metrics.jsonl"));
  CHECK(has(metrics, "\"loss\": " + loss + ","));
}

TEST_CASE("--numbers is --print, and torchrun does not take it for an option of its own") {
  const Trained t;
  const Finished f = t.run({"evaluate=true", "--numbers", "epochs,test.accuracy"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(f.out.starts_with("2 "));
  // argparse accepts each beginning of an option, and torchrun reads the words behind its own.
  for (const std::string option : {"--nnodes",
                                   "--nproc-per-node",
                                   "--rdzv-backend",
                                   "--standalone",
                                   "--max-restarts",
                                   "--monitor-interval",
                                   "--start-method",
                                   "--event-log-handler",
                                   "--role",
                                   "--module",
                                   "--no-python",
                                   "--run-path",
                                   "--log-dir",
                                   "--redirects",
                                   "--tee",
                                   "--local-ranks-filter",
                                   "--node-rank",
                                   "--master-addr",
                                   "--local-addr",
                                   "--logs-specs",
                                   "--numa-binding",
                                   "--signals-to-handle",
                                   "--print-completion"})
    for (const char* own : {"--numbers", "--json", "--resume", "--quiet"})
      CHECK(!option.starts_with(own));
}

TEST_CASE("--print works on several ranks, and for a run that was complete already") {
  const Trained t;
  const Finished ddp = t.run({"parallel=ddp", "devices=2", "reproducible=8", "--print=loss"});
  CHECK_MESSAGE(ddp.code == 0, ddp.err);
  const Finished single = t.run({"reproducible=8", "--print=loss"});
  CHECK(ddp.out == single.out);
  CHECK(std::stod(ddp.out) > 0);
  CHECK(t.run({"reproducible=8", "--print=loss", "--resume=auto"}).out == single.out);
}

TEST_CASE("--print refuses names that a run does not have before it trains") {
  const Trained t;
  const Finished wrong = t.run({"--print", "loss,test.accuracy"});
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.err ==
        "dptrain: --print: this run has no number 'test.accuracy'; set evaluate=true to evaluate "
        "on the test set; it has: loss, best.loss, lr, epochs, steps, seconds, "
        "samples_per_second, weights.sha256, out\n");
  CHECK(has(t.run({"evaluate=true", "--print="}).err, "--print"));
  CHECK(t.run({"--print", "loss", "--json"}).code == 2);
  CHECK(!std::filesystem::exists(t.folder.file("runs")));
  const Finished late = t.run({"evaluate={every: 3}", "--print=test.loss"});
  CHECK(late.code == 1);
  CHECK(late.out.empty());
  CHECK(has(late.err, "has no test.loss: no epoch with an evaluation was completed"));
}

TEST_CASE("--json prints a summary of the run") {
  const Trained t;
  const Finished f = t.run({"--json", "evaluate=true"});
  CHECK_MESSAGE(f.code == 0, f.err);
  const SourceFile file{.path = "json", .text = f.out};
  Diagnostics d;
  const Node root = read_yaml(file, d);  // JSON is YAML, too
  REQUIRE(d.ok());
  const auto text = [&](const char* key) { return root.find(key) ? root.find(key)->text : ""; };
  CHECK(text("state") == "finished");
  CHECK(text("run") == "runs/t/1");
  CHECK(text("name") == "t");
  CHECK(text("epochs") == "2");
  CHECK(text("steps") == "8");
  CHECK(!text("best.test.accuracy").empty());
  CHECK(text("weights.sha256").size() == 64);
}

TEST_CASE("a run that is stopped prints no number, but a summary") {
  for (const bool json : {false, true}) {
    const Trained t;
    t.folder.write("t.yaml", kSmall);
    Process p({"t.yaml", "epochs=100000000", json ? "--json" : "--print=loss"}, {},
              t.folder.path());
    CHECK(becomes_true(
        60, [&] { return has(read_file(t.folder.file("runs/t/1/metrics.jsonl")), "epoch"); }));
    p.send(SIGTERM);
    CHECK(p.wait() == 143);
    CHECK(p.out().empty() == !json);
    if (json) CHECK(has(p.out(), "\"state\": \"stopped\""));
  }
}

}  // namespace
}  // namespace dpt
