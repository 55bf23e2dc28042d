// The program itself on fake GPUs, as processes and as ranks that a launcher started: what forks
// where, who opens which GPU, who waits for whom.
#include <filesystem>

#include <doctest/doctest.h>

#include "cli/process.h"
#include "engine/gpu/fake_machine.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

Variables rank_of_two(int rank) {
  return {
      {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", std::to_string(rank)}};
}

TEST_CASE("doctor shows the GPUs that a process is shown") {
  const Machine machine(3);
  const Finished doctor =
      dptrain({"doctor"}, machine.environment({{"CUDA_VISIBLE_DEVICES", "0,2"}}));
  CHECK(doctor.code == 0);
  CHECK(doctor.out.find("[x] cuda:0       fake GPU at 0000:00:00.0") != std::string::npos);
  CHECK(doctor.out.find("[x] cuda:1       fake GPU at 0000:02:00.0") != std::string::npos);
  CHECK(doctor.out.find("cuda:2") == std::string::npos);
  CHECK(doctor.out.find("] /dev/shm") != std::string::npos);
}

TEST_CASE("the program trains on GPUs in every mode, as processes") {
  const Machine machine(2);
  const auto train = [&](const std::string& run, std::vector<std::string> more) {
    const Finished ran = machine.train(run, more);
    CHECK_MESSAGE(ran.code == 0, run << ": " << ran.err);
  };
  train("cpu", {"device=cpu", "cores=1"});
  train("single", {"device=cuda"});
  machine.same_numbers("single", "cpu");
  train("ddp-cpu", {"device=cpu", "cores=1", "parallel=ddp", "devices=2"});
  train("ddp", {"device=cuda", "parallel=ddp", "devices=2"});
  machine.same_numbers("ddp", "ddp-cpu");
  train("ddp-gloo", {"device=cuda", "parallel={ddp: {backend: gloo}}", "devices=2"});
  machine.same_numbers("ddp-gloo", "ddp-cpu");
  train("dp-cpu", {"device=cpu", "cores=1", "parallel=dp", "devices=2"});
  train("dp", {"device=cuda", "parallel=dp"});
  machine.same_numbers("dp", "dp-cpu");
  train("dp-shared", {"device=cuda", "parallel=dp", "devices=[cuda:0, cuda:0]"});
  machine.same_numbers("dp-shared", "dp-cpu");
}

TEST_CASE("a GPU that is not there is told before anything of an earlier run is moved") {
  const Machine machine(2);
  REQUIRE(machine.train("run", {"device=cuda"}).code == 0);
  const Finished wrong = machine.train("run", {"device=cuda", "devices=[cuda:3]"});
  CHECK(wrong.code == static_cast<int>(Fault::device));
  CHECK_MESSAGE(
      wrong.err.find("device cuda:3 does not exist: CUDA finds 2 GPUs, numbered from 0") !=
          std::string::npos,
      wrong.err);
  CHECK(fs::exists(machine.file("run/model.safetensors")));
  CHECK(!fs::exists(machine.file("run/checkpoints.previous")));
  CHECK(!fs::exists(machine.file("run/model.previous.safetensors")));
}

TEST_CASE(
    "ranks that a launcher started take a GPU each, whether they are shown all or their own") {
  const Machine machine(2);
  const std::vector<std::string> how = {"device=cuda", "parallel=ddp"};
  const Finished own = machine.train("own", how);
  REQUIRE_MESSAGE(own.code == 0, own.err);
  for (const bool shown_all : {true, false}) {
    CAPTURE(shown_all);
    const auto environment = [&](int rank) {
      Variables out = machine.environment(rank_of_two(rank));
      if (!shown_all) out.emplace_back("CUDA_VISIBLE_DEVICES", std::to_string(rank));
      return out;
    };
    Process zero(machine.words("given", how), environment(0)),
        one(machine.words("given", how), environment(1));
    CHECK_MESSAGE(zero.wait() == 0, zero.err());
    CHECK_MESSAGE(one.wait() == 0, one.err());
    CHECK(!machine.weights("own").empty());
    CHECK(machine.weights("given") == machine.weights("own"));
    fs::remove_all(machine.file("given"));
  }
}

TEST_CASE("a pipeline's stages are ranks that a launcher started, a GPU each") {
  const Machine machine(2);
  std::vector<std::string> how = {"device=cuda", "epochs=1",
                                  "parallel={pipeline: {stages: 2, chunks: 2}}"};
  Process zero(machine.words("given", how), machine.environment(rank_of_two(0))),
      one(machine.words("given", how), machine.environment(rank_of_two(1)));
  CHECK_MESSAGE(zero.wait() == 0, zero.err());
  CHECK_MESSAGE(one.wait() == 0, one.err());
  how.back() = "parallel={pipeline: {stages: 2, chunks: 2, processes: true}}";
  const Finished own = machine.train("own", how);
  REQUIRE_MESSAGE(own.code == 0, own.err);
  CHECK(!machine.weights("own").empty());
  CHECK(machine.weights("given") == machine.weights("own"));
}

TEST_CASE("ranks that are shown the same GPU are told so") {
  const Machine machine(1);
  const std::vector<std::string> words = machine.words("run", {"device=cuda", "parallel=ddp"});
  Process zero(words, machine.environment(rank_of_two(0))),
      one(words, machine.environment(rank_of_two(1)));
  CHECK(zero.wait() != 0);
  CHECK(one.wait() == static_cast<int>(Fault::device));
  CHECK_MESSAGE(
      one.err().find("ranks 0 and 1 both use the GPU at 0000:00:00.0") != std::string::npos,
      one.err());
  CHECK(!fs::exists(machine.file("run/model.safetensors")));
}

}  // namespace
}  // namespace dpt
