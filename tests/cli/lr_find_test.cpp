// dptrain lr-find: one number, and nothing else is left.
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/process.h"

namespace dpt {
namespace {

std::string spec(const std::string& more = "") {
  return "data: {dataset: {synthetic_regression: {samples: 96}}, batch_size: 8}\n"
         "model: [linear: 8, relu, linear: 1]\nloss: mse_loss\noptimizer: {sgd: 0.1}\n"
         "schedule: {cosine_annealing: {}, warmup: 1}\nepochs: 1\ncores: 1\n" +
         more;
}

Finished find(const Folder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"lr-find", "t.yaml"};
  words.insert(words.end(), more.begin(), more.end());
  std::filesystem::create_directories(folder.file("tmp"));
  return dptrain(words, {{"TMPDIR", folder.file("tmp")}}, folder.path());
}

TEST_CASE("lr-find prints one number, the same in every mode, and leaves no files") {
  const Folder folder;
  folder.write("t.yaml", spec("reproducible: 2\n"));
  const Finished single = find(folder, {});
  CHECK_MESSAGE(single.code == 0, single.err);
  const double lr = std::strtod(single.out.c_str(), nullptr);
  CHECK(single.out == fmt::format("{:.2g}\n", lr));
  // For a linear regression with standard normal inputs: 1 would diverge, 1e-6 learn nothing.
  CHECK(lr > 1e-6);
  CHECK(lr < 1);
  CHECK_MESSAGE(has(single.err, "schedule and warm-up are not used"), single.err);
  CHECK_MESSAGE(has(single.err, "next: dptrain t.yaml optimizer.lr=" + single.out), single.err);
  for (const char* mode : {"parallel=dp", "parallel=ddp"}) {
    const Finished f = find(folder, {mode, "devices=2"});
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK(f.out == single.out);
  }
  CHECK(std::filesystem::is_empty(folder.file("tmp")));
  CHECK(!std::filesystem::exists(folder.file("runs")));
}

TEST_CASE("lr-find --json and --svg") {
  const Folder folder;
  folder.write("t.yaml", spec("save: {every_epochs: 1}\n"));
  const Finished f = find(folder, {"--json", "--svg", "a.svg", "--steps", "60", "--to", "1"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(f.out.starts_with("{\"valley\": "));
  CHECK(has(f.out, "\"lr\": [1e-07, 1.3"));  // 1e7^(1/59) = 1.31
  CHECK(read_file(folder.file("a.svg")).starts_with("<svg"));
}

TEST_CASE("lr-find measures with the batch size that auto chooses, and names it") {
  const Folder folder;
  folder.write("t.yaml", spec());
  const Finished f = find(folder, {"data.batch_size=auto"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK_MESSAGE(has(f.err,
                    "next: dptrain t.yaml data.batch_size=auto data.batch_size=16 "
                    "optimizer.lr=" +
                        f.out),
                f.err);
}

TEST_CASE("lr-find says why there is no number") {
  const Folder folder;
  folder.write("t.yaml", spec());
  const auto fails = [&](int code, const std::string& text, const std::vector<std::string>& more) {
    const Finished f = find(folder, more);
    CHECK(f.code == code);
    CHECK(f.out.empty());
    CHECK_MESSAGE(has(f.err, text), f.err);
  };
  fails(1, "the loss diverges after ", {"--from", "1e5", "--to", "1e6"});
  fails(1, "the loss does not fall at any learning rate", {"--to", "1e-6"});
  fails(2, "--from 1 must be less than --to 0.1", {"--from", "1", "--to", "0.1"});
  fails(2, "unknown key 'optimiser'", {"optimiser=sgd"});
  fails(4, "nowhere.csv", {"data.dataset={csv: nowhere.csv}"});
  CHECK(std::filesystem::is_empty(folder.file("tmp")));
}

TEST_CASE("Ctrl-C ends lr-find without leaving files") {
  const Folder folder;
  folder.write("t.yaml", spec());
  const std::string temporary = folder.file("tmp");
  std::filesystem::create_directories(temporary);
  // Each step waits for a slow net, so the test is not over before the signal.
  Process p({"lr-find", "t.yaml", "--steps", "2000",
             "model=[linear: 2000, linear: 2000, linear: 1]", "data.batch_size=96"},
            {{"TMPDIR", temporary}}, folder.path());
  REQUIRE(becomes_true(60, [&] {
    for (const auto& entry : std::filesystem::directory_iterator(temporary))
      if (std::filesystem::exists(entry.path() / "run/metrics.jsonl")) return true;
    return false;
  }));
  p.send_group(SIGINT);
  CHECK(p.wait() == 130);
  CHECK(p.out().empty());
  CHECK(std::filesystem::is_empty(temporary));
}

TEST_CASE("lr-find refuses to be started by a launcher") {
  const Folder folder;
  folder.write("t.yaml", spec());
  const Finished f = dptrain({"lr-find", "t.yaml"},
                             {{"RANK", "0"},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_RANK", "0"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "127.0.0.1"},
                              {"MASTER_PORT", "29511"}},
                             folder.path());
  CHECK(f.code == 2);
  CHECK_MESSAGE(has(f.err, "run it without torchrun"), f.err);
}

}  // namespace
}  // namespace dpt
