// data.batch_size: auto: chosen once, written into the resolved spec, kept by --resume.
#include <filesystem>

#include <doctest/doctest.h>

#include "cli/process.h"

namespace dpt {
namespace {

// 64 samples: at least 16 steps per epoch leave no choice but the smallest batch, which makes the
// test independent of speeds.
std::string spec(const std::string& batch, const std::string& more = "") {
  return "data: {dataset: {synthetic_regression: {samples: 64}}, batch_size: " + batch +
         "}\nmodel: [linear: 8, relu, linear: 1]\nloss: mse_loss\noptimizer: {sgd: 0.01}\n"
         "epochs: 2\ncores: 1\n" +
         more;
}

std::string resolved(const Folder& folder, const std::string& run) {
  return read_file(folder.file("runs/t/" + run + "/spec.resolved.yaml"));
}

TEST_CASE("auto becomes a number in the resolved spec, and trains the same as that number") {
  const Folder folder;
  folder.write("t.yaml", spec("auto"));
  const Finished f = dptrain({"t.yaml"}, {}, folder.path());
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK_MESSAGE(has(f.err, "data.batch_size: auto is 16: the smallest within 10 %"), f.err);
  CHECK_MESSAGE(has(f.err, "larger ones would leave fewer than 16 steps per epoch"), f.err);
  CHECK_MESSAGE(has(resolved(folder, "1"), "batch_size: 16"), resolved(folder, "1"));
  CHECK(dptrain({"t.yaml", "data.batch_size=16"}, {}, folder.path()).code == 0);
  CHECK(read_file(folder.file("runs/t/1/model.safetensors")) ==
        read_file(folder.file("runs/t/2/model.safetensors")));
}

TEST_CASE("a batch of ddp is a multiple of its ranks") {
  const Folder folder;
  folder.write("t.yaml", spec("auto", "parallel: ddp\ndevices: 3\n"));
  const Finished f = dptrain({"t.yaml"}, {}, folder.path());
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK_MESSAGE(has(resolved(folder, "1"), "batch_size: 18"), resolved(folder, "1"));
}

TEST_CASE("settings that need evaluations do not hinder the measurement") {
  const Folder folder;
  folder.write("t.yaml",
               "data: {dataset: {synthetic_regression: {samples: 64}}, batch_size: auto, "
               "validation: 0.25}\nmodel: [linear: 1]\nloss: mse_loss\n"
               "optimizer: {sgd: 0.01}\nepochs: 2\ncores: 1\nsave: {best: mae}\n"
               "early_stop: 1\n");
  const Finished f = dptrain({"t.yaml"}, {}, folder.path());
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK_MESSAGE(has(f.err, "data.batch_size: auto is 16"), f.err);
}

TEST_CASE("a resumed run keeps its batch size and measures nothing") {
  const Folder folder;
  folder.write("t.yaml", spec("24"));
  CHECK(dptrain({"t.yaml", "epochs=1"}, {}, folder.path()).code == 0);
  for (const char* from : {"auto", "runs/t/1"}) {
    const Finished f = dptrain({"t.yaml", "data.batch_size=auto", "epochs=2", "--resume", from}, {},
                               folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK_MESSAGE(!has(f.err, "samples/s\ndata.batch_size"), f.err);
    CHECK_MESSAGE(!has(f.err, "auto is"), f.err);
    CHECK(!std::filesystem::exists(folder.file("runs/t/2")));
  }
}

TEST_CASE("other commands assume a batch size, or ask for a number") {
  const Folder folder;
  folder.write("t.yaml", spec("auto"));
  for (const char* command : {"plan", "check"}) {
    const Finished f = dptrain({command, "t.yaml"}, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK_MESSAGE(has(f.err, "32 per replica"), f.err);
  }
  const Finished bench = dptrain({"bench", "t.yaml"}, {}, folder.path());
  CHECK(bench.code == 2);
  CHECK_MESSAGE(has(bench.err, "write --batch-sizes 64,256"), bench.err);
  const Finished exported = dptrain({"export", "t.yaml", "--to", "torch"}, {}, folder.path());
  CHECK(exported.code == 2);
  CHECK_MESSAGE(has(exported.err, "a PyTorch program needs a number"), exported.err);
}

TEST_CASE("ranks of a launcher need a number") {
  const Folder folder;
  folder.write("t.yaml", spec("auto", "parallel: ddp\n"));
  const Finished f =
      dptrain({"t.yaml"}, {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}, folder.path());
  CHECK_MESSAGE(f.code == 0, f.err);  // a single rank is no different from none
  const Finished two =
      dptrain({"t.yaml"}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}}, folder.path());
  CHECK(two.code == 2);
  CHECK_MESSAGE(has(two.err, "write data.batch_size=N"), two.err);
}

TEST_CASE("a batch that fits no memory limit is refused with the reason") {
  const Folder folder;
  folder.write("t.yaml", spec("auto", "memory_limit: 0.001\n"));
  const Finished f = dptrain({"t.yaml"}, {}, folder.path());
  CHECK(f.code == 2);
  CHECK_MESSAGE(has(f.err, "memory_limit"), f.err);
}

}  // namespace
}  // namespace dpt
