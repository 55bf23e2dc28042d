// The program itself on fake GPUs of several hosts that this machine pretends to be: leaders
// connect over gloo and the control channel, and fake GPUs find each other by the communicator's
// id.
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "checkpoint/store.h"
#include "cli/process.h"
#include "comm/links/load.h"
#include "engine/gpu/fake_machine.h"
#include "skip.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

bool has_gloo() { return loaded_link_module("gloo").module != nullptr; }

// Ranks that a launcher starts, [hosts][ranks of each], a GPU each.
class Launched {
 public:
  Launched(const Machine& machine, const std::vector<int>& ranks_of_host, const std::string& run,
           const Words& more, const Variables& variables = {}) {
    static int runs = 0;
    const int port = 20000 + (::getpid() * 11 + runs++ * 17) % 9000;
    int world = 0, rank = 0;
    for (const int n : ranks_of_host) world += n;
    for (size_t h = 0; h < ranks_of_host.size(); ++h)
      for (int r = 0; r < ranks_of_host[h]; ++r) {
        Variables all = variables;
        all.insert(all.end(), {{"DPTRAIN_GLOO_MODULE", loaded_link_module("gloo").path},
                               {"DPTRAIN_OUTLIVE_LAUNCHER", "1"},
                               {"RANK", std::to_string(rank++)},
                               {"WORLD_SIZE", std::to_string(world)},
                               {"LOCAL_RANK", std::to_string(r)},
                               {"LOCAL_WORLD_SIZE", std::to_string(ranks_of_host[h])},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"MASTER_PORT", std::to_string(port)}});
        if (ranks_of_host.size() > 1) all.emplace_back("DPTRAIN_NODE", std::to_string(h));
        Words words = machine.words(run, {"device=cuda", "parallel=ddp"});
        words.insert(words.end(), more.begin(), more.end());
        processes_.push_back(std::make_unique<Process>(words, machine.environment(all)));
      }
  }
  Process& rank(size_t r) { return *processes_[r]; }
  std::vector<int> wait() {
    std::vector<int> out;
    for (auto& p : processes_) out.push_back(p->wait());
    return out;
  }
  std::string errors() const {
    std::string out;
    for (const auto& p : processes_) out += p->err();
    return out;
  }
  bool reaches_epoch(int epoch) const {
    const std::string line = fmt::format("Epoch [{}/", epoch);
    return becomes_true(60, [&] { return has(processes_[0]->out(), line); });
  }

 private:
  std::vector<std::unique_ptr<Process>> processes_;
};

void train(const Machine& machine, const std::vector<int>& hosts, const std::string& run,
           const Words& more = {}) {
  CAPTURE(run);
  Launched ranks(machine, hosts, run, more);
  const std::vector<int> codes = ranks.wait();
  CHECK_MESSAGE(codes == std::vector<int>(codes.size(), 0), ranks.errors());
}

}  // namespace

TEST_CASE("hosts of GPUs: the program ends in the bits of one host with as many GPUs") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Machine machine(4);
  const struct {
    std::vector<int> one, several;
  } kRuns[] = {{{2}, {1, 1}}, {{4}, {2, 2}}, {{3}, {1, 1, 1}}};
  for (const auto& run : kRuns) {
    const std::string name = fmt::format("{}x{}", run.several.size(), run.several[0]);
    const Words batch = {run.one[0] == 3 ? "data.batch_size=30" : "data.batch_size=32"};
    train(machine, run.one, "one" + name, batch);
    train(machine, run.several, "several" + name, batch);
    CHECK(!machine.weights("one" + name).empty());
    CHECK(machine.weights("several" + name) == machine.weights("one" + name));
    machine.same_numbers("several" + name, "one" + name);
  }
}

TEST_CASE("hosts of GPUs: the program continues on another number of hosts") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Machine machine(4);
  const std::string sharded = "parallel={ddp: {shard: optimizer}}";
  train(machine, {2}, "whole", {sharded});
  train(machine, {1, 1}, "run", {sharded, "epochs=1"});
  train(machine, {2}, "run", {sharded, "epochs=2", "--resume", "auto"});
  train(machine, {1, 1}, "run", {sharded, "--resume", "auto"});
  CHECK(!machine.weights("whole").empty());
  CHECK(machine.weights("run") == machine.weights("whole"));
}

TEST_CASE("hosts of GPUs: a rank that is killed ends all others, each host with one message") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Machine machine(4);
  // The leader of the second host, or its other rank.
  for (const size_t killed : {size_t{2}, size_t{3}}) {
    CAPTURE(killed);
    Launched ranks(machine, {2, 2}, fmt::format("run{}", killed), {"epochs=1000000"});
    REQUIRE_MESSAGE(ranks.reaches_epoch(2), ranks.errors());
    ranks.rank(killed).send(SIGKILL);
    std::vector<int> expected(4, 6);
    expected[killed] = 128 + SIGKILL;
    CHECK_MESSAGE(ranks.wait() == expected, ranks.errors());
    int messages = 0;
    for (size_t r = 0; r < 4; ++r) messages += has(ranks.rank(r).err(), "dptrain: ") ? 1 : 0;
    CHECK_MESSAGE(messages == 2, ranks.errors());
    CHECK_MESSAGE(has(ranks.rank(0).err() + ranks.rank(1).err(), "host 1 ("), ranks.errors());
    CHECK(!fs::exists(machine.file(fmt::format("run{}/model.safetensors", killed))));
  }
}

TEST_CASE("hosts of GPUs: a stop signal for any rank stops all after the same step") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Machine machine(2);
  Launched ranks(machine, {1, 1}, "run", {"epochs=1000000"});
  REQUIRE_MESSAGE(ranks.reaches_epoch(2), ranks.errors());
  ranks.rank(1).send(SIGTERM);
  CHECK_MESSAGE(ranks.wait() == std::vector<int>(2, 128 + SIGTERM), ranks.errors());
  CHECK_FALSE(checkpoints_in(machine.file("run/checkpoints")).empty());
  CHECK(fs::exists(machine.file("run/model.safetensors")));
}

TEST_CASE("hosts of GPUs: what they cannot do is refused with the reason") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Machine machine(2);
  const auto refused = [&](const std::string& parallel, const std::string& why) {
    Launched ranks(machine, {1, 1}, "run", {parallel});
    CHECK(ranks.wait() == std::vector<int>(2, 2));
    CHECK_MESSAGE(has(ranks.rank(0).err(), why), ranks.errors());
  };
  refused("parallel={ddp: {backend: gloo}}", "GPUs of several machines exchange gradients by NCCL");
  Launched same(machine, {2, 1}, "run", {"data.batch_size=30"}, {{"CUDA_VISIBLE_DEVICES", "1"}});
  for (const int code : same.wait()) CHECK(code != 0);
  CHECK_MESSAGE(has(same.errors(),
                    "ranks 0 and 1 both use the GPU at 0000:01:00.0, but NCCL needs "
                    "a GPU for each rank; start at most one rank per GPU\n"),
                same.errors());
}

}  // namespace dpt
