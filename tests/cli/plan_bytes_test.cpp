// dptrain plan SPEC --bytes.
#include <string>

#include <doctest/doctest.h>

#include "cli/process.h"
#include "data/folder.h"
#include "golden_text.h"

namespace dpt {
namespace {

constexpr const char* kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 64, shape: [1, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 16
model: [flatten, {linear: 64}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
epochs: 1
cores: 1
)";

}  // namespace

TEST_CASE(
    "plan --bytes prints messages of PyTorch and of dptrain, in lines of COLUMNS characters") {
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const std::vector<std::string> words = {"plan", spec, "--bytes", "parallel=ddp", "devices=2"};
  const Finished wide = dptrain(words, {{"COLUMNS", "200"}});
  CHECK_MESSAGE(wide.code == 0, wide.err);
  CHECK_MESSAGE(has(wide.out, "  all_reduce  gradients of 3.bias to 1.weight (4 tensors)  19240"),
                wide.out);
  CHECK(has(wide.out, "\ndptrain, parallel: ddp\n"));
  const Finished narrow = dptrain(words, {{"COLUMNS", "40"}});
  CHECK_MESSAGE(has(narrow.out, "  all_reduce  gradients ..  19240      1\n"), narrow.out);
  CHECK(dptrain({"plan", spec, "--bytes", "parallel=dp", "devices=2"}).code == 0);
  CHECK(dptrain({"plan", spec, "--bytes", "parallel={pipeline: {stages: 2, chunks: 4}}"}).code ==
        0);
}

TEST_CASE("plan --bytes: one device, and options that it excludes") {
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const Finished alone = dptrain({"plan", spec, "--bytes"});
  CHECK(alone.code == 2);
  CHECK(has(alone.err,
            "--bytes: the spec has one device, which sends nothing; add, for example, "
            "parallel=ddp devices=4\n"));
  const Finished time = dptrain({"plan", spec, "--bytes", "--time", "parallel=ddp"});
  CHECK(time.code == 2);
  CHECK(has(time.err, "--bytes prints only a table of messages; leave out --time"));
  CHECK(dptrain({"plan", spec, "--bytes", "--fit", "8GiB", "parallel=ddp"}).code == 2);
}

}  // namespace dpt
