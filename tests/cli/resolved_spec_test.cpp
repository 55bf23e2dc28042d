// What a run writes about itself can be run again; devices that are not there are refused.
#include <doctest/doctest.h>

#include "cli/process.h"
#include "data/datasets/loading.h"

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

TEST_CASE("under a launcher spec.resolved.yaml has the number of devices that were used") {
  const Folder folder;
  folder.write("t.yaml", kSpec + "devices: 2\nparallel: ddp\n");
  folder.write("own.yaml", kSpec + "parallel: {ddp: 2}\n");
  const Variables launcher = {{"OMPI_COMM_WORLD_RANK", "0"},
                              {"OMPI_COMM_WORLD_SIZE", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                              {"PMIX_NAMESPACE", "t"}};
  for (const std::string name : {"t", "own"}) {
    const Finished f = dptrain({name + ".yaml", "out=" + name, "cores=1"}, launcher, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK(has(f.err, "devices: 2 in the spec, but "));
    const std::string resolved = read_file(folder.file(name + "/spec.resolved.yaml"));
    CHECK_MESSAGE(has(resolved, "devices: 1"), resolved);
    CHECK(!has(resolved, "devices: 2"));
    CHECK(dptrain({"check", name + "/spec.resolved.yaml"}, {}, folder.path()).code == 0);
  }
}

TEST_CASE("spec.resolved.yaml runs from anywhere: files named by a base's folder, by an argument") {
  const Folder folder;
  folder.write("base/t.csv", "1,2,3\n4,5,6\n7,8,9\n");
  folder.write("base/b.yaml",
               "data: {dataset: {csv: t.csv}, batch_size: 2}\nmodel: [{linear: 1}]\n"
               "loss: mse_loss\noptimizer: {sgd: 0.001}\n");
  folder.write("specs/t.yaml", "extends: ../base/b.yaml\n");
  REQUIRE(dptrain({folder.file("specs/t.yaml"), "out=" + folder.file("one")}).code == 0);
  const std::string start =
      std::filesystem::relative(folder.file("one/model.safetensors")).string();
  const Finished second = dptrain(
      {folder.file("specs/t.yaml"), "out=" + folder.file("two"), "initial_weights=" + start});
  REQUIRE_MESSAGE(second.code == 0, second.err);
  const Finished third =
      dptrain({folder.file("two/spec.resolved.yaml"), "out=" + folder.file("three")});
  REQUIRE_MESSAGE(third.code == 0, third.err);
  CHECK(read_file(folder.file("two/model.safetensors")) ==
        read_file(folder.file("three/model.safetensors")));
}

TEST_CASE("spec.resolved.yaml says where a data set known by name was found") {
  const Folder folder, elsewhere;
  const Folder set;
  write_mnist(set);
  std::filesystem::create_directories(folder.file("datasets"));
  std::filesystem::rename(set.path(), folder.file("datasets/mnist"));
  folder.write("t.yaml",
               "data: {dataset: mnist, batch_size: 2}\nmodel: [flatten, {linear: 10}]\n"
               "loss: cross_entropy\noptimizer: sgd\n");
  const Variables nowhere = {{"DPTRAIN_DATA", elsewhere.path()}};
  REQUIRE(dptrain({folder.file("t.yaml"), "out=" + elsewhere.file("one")}, nowhere).code == 0);
  const std::string resolved = elsewhere.file("one/spec.resolved.yaml");
  const Finished again = dptrain({resolved, "out=" + elsewhere.file("two")}, nowhere);
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(again.err.find("from " + folder.file("datasets/mnist")) != std::string::npos);
  // The folder that was found is no other setting than the spec's.
  REQUIRE(dptrain({folder.file("t.yaml")}, {}, folder.path()).code == 0);
  const Finished evaluated = dptrain({"eval", "t.yaml"}, {}, folder.path());
  CHECK(evaluated.code == 0);
  CHECK_FALSE_MESSAGE(has(evaluated.err, "warning"), evaluated.err);
}

TEST_CASE("CPU devices are numbered from 0") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  CHECK(dptrain({"plan", folder.file("t.yaml"), "parallel=dp", "devices=[cpu:1, cpu:0]"}).code ==
        0);
  const Finished wrong =
      dptrain({"plan", folder.file("t.yaml"), "parallel=dp", "devices=[0, cpu:5]"});
  CHECK(wrong.code == 3);
  CHECK(wrong.err.find("device cpu:5 does not exist") != std::string::npos);
}

}  // namespace dpt
