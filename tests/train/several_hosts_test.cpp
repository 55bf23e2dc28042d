// Runs of the real program on several hosts that this machine pretends to be, over gloo.
#include <csignal>
#include <filesystem>
#include <functional>
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

std::string value_of(const Variables& environment, std::string_view name) {
  for (const auto& [key, value] : environment)
    if (key == name) return value;
  return "";
}

// The ranks of a run, [hosts][ranks of each], each a process of its own.
class Ranks {
 public:
  // change: receives each rank's host, arguments and environment, and may change the latter. A rank
  // without arguments is not started.
  using Change = std::function<void(size_t host, std::vector<std::string>&, Variables&)>;
  Ranks(const std::vector<int>& ranks_of_host, const std::vector<std::string>& arguments,
        const Change& change = {}) {
    int world = 0, rank = 0;
    for (const int n : ranks_of_host) world += n;
    const int port = free_port();
    for (size_t h = 0; h < ranks_of_host.size(); ++h)
      for (int r = 0; r < ranks_of_host[h]; ++r) {
        std::vector<std::string> words = arguments;
        Variables environment = {{"DPTRAIN_GLOO_MODULE", loaded_link_module("gloo").path},
                                 {"DPTRAIN_OUTLIVE_LAUNCHER", "1"},
                                 {"DPTRAIN_NODE", std::to_string(h)},
                                 {"RANK", std::to_string(rank++)},
                                 {"WORLD_SIZE", std::to_string(world)},
                                 {"LOCAL_RANK", std::to_string(r)},
                                 {"LOCAL_WORLD_SIZE", std::to_string(ranks_of_host[h])},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", std::to_string(port)}};
        if (change) change(h, words, environment);
        if (words.empty()) continue;
        processes_.push_back(std::make_unique<Process>(words, environment));
      }
  }
  Process& rank(size_t r) { return *processes_[r]; }
  // Their exit codes, in the order of ranks.
  std::vector<int> wait(double seconds = 120) {
    std::vector<int> out;
    for (auto& p : processes_) out.push_back(p->wait(seconds));
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

// That one message names the rank, its host and the position.
void check_told(const std::string& err, const std::string& name) {
  CAPTURE(err);
  const size_t at = err.find("dptrain: ");
  REQUIRE(at != std::string::npos);
  CHECK(err.find("dptrain: ", at + 1) == std::string::npos);
  const std::string line = err.substr(at, err.find('\n', at) - at);
  CHECK(has(line, name));
  CHECK(has(line, " at epoch "));
  CHECK(has(line, ", step "));
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

TEST_CASE("a run continues on another number of hosts, from the checkpoint of the first one") {
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
  for (const size_t r : {size_t{0}, size_t{2}})
    check_told(ranks.rank(r).err(), "rank 1 on host 1 (");
}

TEST_CASE("the end of a host ends those that still connect to another one, which hangs") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  Ranks ranks({1, 1, 1}, {spec, "out=" + folder.file("run")},
              [](size_t host, std::vector<std::string>&, Variables& environment) {
                if (host == 1)
                  environment[0].second = beside_this_program("libstopping_link_module.so");
              });
  REQUIRE(becomes_true(60, [&] { return has(ranks.rank(1).err(), "connects no further"); }));
  ranks.rank(2).send(SIGKILL);
  CHECK_MESSAGE(ranks.rank(0).wait(20) == 6, ranks.errors());
  CHECK_MESSAGE(has(ranks.rank(0).err(), "rank 2 on host 2 ("), ranks.errors());
  CHECK_MESSAGE(has(ranks.rank(0).err(), "ended unexpectedly while connecting to other hosts"),
                ranks.errors());
  ranks.rank(1).send(SIGKILL);
}

TEST_CASE("a rank that is killed has its number among all ranks in the messages of all hosts") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  Ranks ranks({1, 2}, {spec, "epochs=10000000", "out=" + folder.file("run")});
  REQUIRE(
      becomes_true(60, [&] { return ranks.rank(0).out().find("Epoch [2/") != std::string::npos; }));
  ranks.rank(2).send(SIGKILL);
  CHECK(ranks.wait() == std::vector<int>{6, 6, 128 + SIGKILL});
  const std::string expected =
      fmt::format("rank 2 (pid {}, signal unknown) on host 1 (", ranks.rank(2).pid());
  for (const size_t r : {size_t{0}, size_t{1}}) check_told(ranks.rank(r).err(), expected);
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

TEST_CASE("hosts with different specs do not train, and host 0 says so") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec), out = "out=" + folder.file("run");
  Ranks specs({1, 1}, {spec, out}, [](size_t host, std::vector<std::string>& words, Variables&) {
    if (host == 1) words.emplace_back("epochs=4");
  });
  CHECK(specs.wait() == std::vector<int>(2, 6));
  CHECK_MESSAGE(has(specs.rank(0).err(), "have different specs"), specs.errors());
  CHECK(specs.rank(1).err().find("dptrain:") == std::string::npos);
}

// A table of 72 rows, and 8 for tests, in which one number may be another.
std::string write_table(const Folder& folder, const std::string& spec, bool other_train = false,
                        bool other_test = false) {
  const auto rows = [](int count, bool other) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += fmt::format("{},{},{}\n", i, (other && i == count / 2) ? 7 : i % 5, i % 2);
    return out;
  };
  folder.write("train.csv", rows(72, other_train));
  folder.write("test.csv", rows(8, other_test));
  return folder.write("t.yaml", spec);
}

const std::string kTable = R"(
data:
  dataset: {csv: {path: train.csv, test_path: test.csv, classes: 2}}
  batch_size: 24
model: [{linear: 2}]
loss: cross_entropy
optimizer: {sgd: 0.01}
epochs: 2
parallel: ddp
cores: 1
evaluate: true
)";

TEST_CASE("hosts may have their files in different folders, with the same contents") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder a, b;
  const std::vector<std::string> specs = {write_table(a, kTable), write_table(b, kTable)};
  Ranks ranks({1, 1}, {"out=run"}, [&](size_t host, std::vector<std::string>& words, Variables&) {
    words = {specs[host], "out=" + (host == 0 ? a : b).file("run")};
  });
  CHECK_MESSAGE(ranks.wait() == std::vector<int>(2, 0), ranks.errors());
  CHECK_FALSE(fs::exists(b.file("run")));
}

TEST_CASE("hosts with different data do not train, and host 0 names both") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  for (const bool test_set : {false, true}) {
    CAPTURE(test_set);
    const Folder a, b;
    const std::vector<std::string> specs = {write_table(a, kTable),
                                            write_table(b, kTable, !test_set, test_set)};
    Ranks ranks({2, 1}, {}, [&](size_t host, std::vector<std::string>& words, Variables&) {
      words = {specs[host], "out=" + a.file("run")};
    });
    const std::vector<int> codes = ranks.wait(), expected = {4, 6, 6};
    CHECK_MESSAGE(codes == expected, ranks.errors());
    const std::string err = ranks.errors();
    CHECK_MESSAGE(has(ranks.rank(0).err(), test_set ? "have different test data: host 1 ("
                                                    : "have different training data: host 1 ("),
                  err);
    CHECK_MESSAGE(has(err, "from " + b.file(test_set ? "test.csv" : "train.csv")), err);
    CHECK_MESSAGE(has(err, "from " + a.file(test_set ? "test.csv" : "train.csv")), err);
    for (const size_t r : {size_t{0}, size_t{2}}) {  // once on each host
      const std::string own = ranks.rank(r).err();
      CHECK_MESSAGE(own.find("have different") == own.rfind("have different"), own);
    }
    CHECK(ranks.rank(1).err().find("have different") == std::string::npos);
    CHECK_FALSE(fs::exists(a.file("run")));
  }
}

TEST_CASE("data that one host does not have ends all hosts, and host 0 says which") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  for (const size_t odd : {size_t{0}, size_t{1}}) {
    CAPTURE(odd);
    const Folder a, b;
    const std::vector<std::string> specs = {write_table(a, kTable), write_table(b, kTable)};
    fs::remove((odd == 0 ? a : b).file("train.csv"));
    Ranks ranks({1, 1}, {}, [&](size_t host, std::vector<std::string>& words, Variables&) {
      words = {specs[host], "out=" + a.file("run")};
    });
    const std::vector<int> codes = ranks.wait();
    CHECK_MESSAGE(codes[odd] == 4, ranks.errors());
    CHECK(codes[1 - odd] == 6);
    CHECK_MESSAGE(has(ranks.rank(0).err(), (odd == 0 ? a : b).file("train.csv")), ranks.errors());
  }
}

TEST_CASE("a rank that is missing on another host is reported by host 0") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  Ranks ranks({1, 2}, {spec, "parallel={ddp: {timeout: 8}}", "out=" + folder.file("run")},
              [](size_t, std::vector<std::string>& words, Variables& environment) {
                if (value_of(environment, "RANK") == "2") words.clear();
              });
  CHECK_MESSAGE(ranks.wait() == std::vector<int>(2, 6), ranks.errors());
  CHECK_MESSAGE(has(ranks.rank(0).err(),
                    "failed before all hosts had connected: rank 2 of 3 did not connect within "
                    "6 s"),
                ranks.errors());
  CHECK(ranks.rank(1).err().find("dptrain:") == std::string::npos);
}

TEST_CASE("a secret that cannot be read is reported once, by each host that needs it") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  Ranks ranks({2, 2}, {spec, "out=" + folder.file("run")},
              [&](size_t, std::vector<std::string>&, Variables& environment) {
                environment.emplace_back("DPTRAIN_SECRET_FILE", folder.file("none"));
              });
  const std::vector<int> codes = ranks.wait(60), expected = {2, 6, 2, 6};
  CHECK_MESSAGE(codes == expected, ranks.errors());
  const std::string all = ranks.errors(), what = "DPTRAIN_SECRET_FILE=" + folder.file("none");
  for (const size_t leader : {size_t{0}, size_t{2}}) {
    const std::string err = ranks.rank(leader).err();
    CHECK_MESSAGE(has(err, what + ": No such file or directory"), all);
    CHECK_MESSAGE(err.find(what) == err.rfind(what), all);
    CHECK_MESSAGE(ranks.rank(leader + 1).err().find(what) == std::string::npos, all);
  }
}

TEST_CASE("the launcher's number of ranks on several hosts replaces `devices`, with one note") {
  if (skip_without(has_gloo(), "libdptrain_gloo.so")) return;
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  Ranks ranks({2, 1}, {spec, "devices=2", "steps=2", "out=" + folder.file("run")});
  CHECK_MESSAGE(ranks.wait() == std::vector<int>(3, 0), ranks.errors());
  const std::string note = "devices: 2 in the spec, but torchrun started 3 ranks: training on 3\n";
  CHECK_MESSAGE(has(ranks.rank(0).err(), note), ranks.errors());
  const std::string all = ranks.errors();
  CHECK(all.find(note) == all.rfind(note));
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
