// Runs of the real program on several hosts that this machine pretends to be, over gloo.
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/files.h"
#include "checkpoint/store.h"
#include "cli/process.h"
#include "comm/links/load.h"
#include "skip.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 600, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 48
model: [flatten, {linear: 24}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 3
parallel: ddp
cores: 1
reproducible: {shards: 8, gradients: stored}
)";

bool has_gloo() { return loaded_link_module("gloo").module != nullptr; }

// A port that other runs of this test, at the same time, do not use.
int free_port() {
  static int next = 0;
  return 20000 + (::getpid() * 7 + next++ * 13) % 9000;
}

// The ranks of a run, [hosts][ranks of each], each a process of its own.
class Ranks {
 public:
  Ranks(const std::vector<int>& ranks_of_host, const std::vector<std::string>& arguments,
        int odd_host = -1, const std::vector<std::string>& odd_arguments = {}) {
    int world = 0, rank = 0;
    for (const int n : ranks_of_host) world += n;
    const int port = free_port();
    for (size_t h = 0; h < ranks_of_host.size(); ++h)
      for (int r = 0; r < ranks_of_host[h]; ++r) {
        std::vector<std::string> words = arguments;
        if (static_cast<int>(h) == odd_host)
          words.insert(words.end(), odd_arguments.begin(), odd_arguments.end());
        const Variables environment = {{"DPTRAIN_GLOO_MODULE", loaded_link_module("gloo").path},
                                       {"DPTRAIN_OUTLIVE_LAUNCHER", "1"},
                                       {"DPTRAIN_NODE", std::to_string(h)},
                                       {"RANK", std::to_string(rank++)},
                                       {"WORLD_SIZE", std::to_string(world)},
                                       {"LOCAL_RANK", std::to_string(r)},
                                       {"LOCAL_WORLD_SIZE", std::to_string(ranks_of_host[h])},
                                       {"MASTER_ADDR", "127.0.0.1"},
                                       {"MASTER_PORT", std::to_string(port)}};
        processes_.push_back(std::make_unique<Process>(words, environment));
      }
  }
  Process& rank(size_t r) { return *processes_[r]; }
  // Their exit codes, in the order of ranks.
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

 private:
  std::vector<std::unique_ptr<Process>> processes_;
};

std::string weights_of(const Folder& folder, const std::string& run) {
  return read_file(folder.file(run + "/model.safetensors"));
}

// The weights that one process ends with.
std::string alone(const Folder& folder) {
  const Finished run = dptrain({folder.file("t.yaml"), "devices=1", "out=" + folder.file("alone")});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  return weights_of(folder, "alone");
}

TEST_CASE("several hosts end in the bits of one process, and only the first one writes") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const std::string expected = alone(folder);
  int number = 0;
  for (const std::vector<int>& hosts :
       {std::vector<int>{1, 1}, std::vector<int>{2, 1}, std::vector<int>{1, 1, 1}}) {
    CAPTURE(hosts.size());
    const std::string name = fmt::format("run{}", number++);
    Ranks ranks(hosts, {spec, "out=" + folder.file(name)});
    const std::vector<int> codes = ranks.wait();
    CHECK_MESSAGE(codes == std::vector<int>(codes.size(), 0), ranks.errors());
    CHECK(weights_of(folder, name) == expected);
    for (size_t r = 0; r < codes.size(); ++r)
      CHECK((ranks.rank(r).out().find("Epoch [3/3]") != std::string::npos) == (r == 0));
  }
}

TEST_CASE("a run goes on on another number of hosts, from the checkpoint of the first one") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const std::string expected = alone(folder), out = "out=" + folder.file("run");
  Ranks first({1, 1}, {spec, out, "epochs=1"});
  CHECK_MESSAGE(first.wait() == std::vector<int>(2, 0), first.errors());
  Ranks second({1, 1, 1}, {spec, out, "--resume", "auto"});
  CHECK_MESSAGE(second.wait() == std::vector<int>(3, 0), second.errors());
  CHECK(has(second.rank(0).err(), "resuming from "));
  CHECK(weights_of(folder, "run") == expected);
}

TEST_CASE("a host that is killed ends the run on all others, which name it") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  Ranks ranks({1, 1, 1}, {spec, "epochs=10000000", "out=" + folder.file("run")});
  REQUIRE(
      becomes_true(60, [&] { return ranks.rank(0).out().find("Epoch [2/") != std::string::npos; }));
  ranks.rank(1).send(SIGKILL);
  CHECK(ranks.wait() == std::vector<int>{6, 128 + SIGKILL, 6});
  for (const size_t r : {size_t{0}, size_t{2}}) {
    const std::string err = ranks.rank(r).err();
    // The control channel or the link notices first.
    const bool named = has(err, "dptrain: host 1 (") || has(err, "dptrain: host 1: connection ");
    CHECK_MESSAGE(named, err);
  }
}

TEST_CASE("a stop signal for a rank of any host stops all hosts after the same step") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  Ranks ranks({1, 1}, {spec, "epochs=10000000", "out=" + folder.file("run")});
  REQUIRE(
      becomes_true(60, [&] { return ranks.rank(0).out().find("Epoch [2/") != std::string::npos; }));
  ranks.rank(1).send(SIGTERM);
  const std::vector<int> codes = ranks.wait();
  CHECK_MESSAGE(codes == std::vector<int>(2, 128 + SIGTERM), ranks.errors());
  CHECK_FALSE(checkpoints_in(folder.file("run/checkpoints")).empty());
  CHECK(fs::exists(folder.file("run/model.safetensors")));
}

TEST_CASE("hosts with different specs or data do not train") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec), out = "out=" + folder.file("run");
  Ranks specs({1, 1}, {spec, out}, 1, {"epochs=4"});
  CHECK(specs.wait() == std::vector<int>(2, 6));
  CHECK_MESSAGE(has(specs.rank(0).err(), "have different specs"), specs.errors());
  CHECK(specs.rank(1).err().find("dptrain:") == std::string::npos);
}

TEST_CASE("modes of one process are refused on several hosts, once") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  Ranks ranks({1, 1}, {spec, "parallel=dp", "out=" + folder.file("run")});
  CHECK(ranks.wait() == std::vector<int>(2, 2));
  CHECK_MESSAGE(has(ranks.rank(0).err(), "parallel mode 'dp' is one process on one machine"),
                ranks.errors());
}

}  // namespace
}  // namespace dpt
