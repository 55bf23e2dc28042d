// What a run writes about itself can be run again; devices that are not there are refused.
#include <doctest/doctest.h>

#include "cli/process.h"

namespace dpt {
namespace {

const std::string kSpec = R"(
data: {dataset: {random: {samples: 20, in_features: 5, out_features: 3}}, batch_size: 8}
model: [{linear: 3}]
loss: mse_loss
optimizer: sgd
)";

}  // namespace

TEST_CASE("a run's spec.resolved.yaml has the run's name and gives the same weights") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  CHECK(dptrain({folder.file("t.yaml"), "out=" + (folder.file("one")), "seed=3"}).code == 0);
  CHECK(dptrain({folder.file("one/spec.resolved.yaml"), "out=" + (folder.file("two"))}).code == 0);
  CHECK(read_file(folder.file("one/spec.resolved.yaml")).find("name: \"t\"") != std::string::npos);
  CHECK_FALSE(read_file(folder.file("one/model.safetensors")).empty());
  CHECK(read_file(folder.file("one/model.safetensors")) ==
        read_file(folder.file("two/model.safetensors")));
}

TEST_CASE("CPU devices are numbered from 0") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  CHECK(dptrain({"plan", folder.file("t.yaml"), "parallel=dp", "devices=[cpu:1, cpu:0]"}).code ==
        0);
  const Finished wrong =
      dptrain({"plan", folder.file("t.yaml"), "parallel=dp", "devices=[0, cpu:5]"});
  CHECK(wrong.code == 3);
  CHECK(wrong.err.find("device cpu:5 is not there") != std::string::npos);
}

}  // namespace dpt
