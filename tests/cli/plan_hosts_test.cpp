// dptrain plan SPEC --hosts N --link LINK.
#include "cli/plan_hosts.h"

#include <doctest/doctest.h>

#include "cli/process.h"
#include "data/folder.h"

namespace dpt {
namespace {

using commands::parse_hosts;

constexpr const char* kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 64, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 6
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
epochs: 1
parallel: {ddp: 1}
cores: 1
)";

}  // namespace

TEST_CASE("--hosts is a number, or a range of which powers of two are taken") {
  CHECK(parse_hosts("1") == std::vector<int>{1});
  CHECK(parse_hosts("1024") == std::vector<int>{1024});
  CHECK(parse_hosts("1..1") == std::vector<int>{1});
  CHECK(parse_hosts("1..8") == std::vector<int>{1, 2, 4, 8});
  CHECK(parse_hosts("1..1024").size() == 11);
  CHECK(parse_hosts("3..12") == std::vector<int>{3, 4, 8, 12});
  for (const char* text :
       {"0", "1025", "x", "1.5", "1..", "..8", "1..2..4", "-1", "1..1025", " 1"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_hosts(text),
                      doctest::Contains("is not a number of machines from 1 to 1024"));
  }
  CHECK_THROWS_WITH(parse_hosts("8..2"),
                    "--hosts: the range '8..2' ends before it begins; write 2..8");
}

TEST_CASE("plan --link prints a row for each number of hosts, or why it is refused") {
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const Finished ran = dptrain({"plan", spec, "--hosts", "2..8", "--link", "10GbE"});
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "link 10GbE: 1.15 GB/s each way, latency 25.0 us"), ran.out);
  CHECK(has(ran.out, "\n    1         6  "));
  CHECK(has(ran.out, "\n    2         3  "));
  CHECK(has(ran.out, "\n    4  refused: batch_size 6 cannot be split evenly across 4 ranks; use "));
  CHECK(
      has(ran.out, "\n    8  refused: 6 samples a step are fewer than the 8 shards of 8 hosts\n"));
}

TEST_CASE("plan --hosts accepts keys that apply only between hosts") {
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const std::string buckets = "parallel={ddp: {devices: 1, bucket_cap_mb: 1}}";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--hosts", "2"}, {"--hosts", "2", "--link", "10GbE"}}) {
    std::vector<std::string> command = {"plan", spec, buckets};
    command.insert(command.end(), words.begin(), words.end());
    const Finished ran = dptrain(command);
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
  CHECK(has(dptrain({"plan", spec, buckets}).err, "`bucket_cap_mb` are for GPUs"));
}

TEST_CASE("plan --link: arguments that contradict each other are refused") {
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"plan", spec});
    const Finished ran = dptrain(words);
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(has(refused({"--link", "10GbE"}),
            "--link says how several machines are connected, but --hosts is missing; add, for "
            "example, --hosts 1..64"));
  CHECK(has(refused({"--hosts", "1..8"}),
            "--hosts: the plan of the range '1..8' cannot be printed; "
            "write one number, or add, for example, --link 10GbE"));
  CHECK(has(refused({"--hosts", "0"}), "--hosts: '0' is not a number of machines from 1 to 1024"));
  CHECK(has(refused({"--hosts", "2", "--link", "10Gbe"}), "did you mean '10GbE'?"));
  CHECK(has(refused({"--hosts", "2", "--link", "10GbE", "--fit", "1GiB"}), "leave out --fit"));
  // For a mode that cannot span machines, the spec's line is named.
  CHECK(has(refused({"parallel=single", "--hosts", "2", "--link", "10GbE"}),
            "parallel mode 'single' is one process on one machine"));
  CHECK(dptrain({"plan", spec, "--hosts", "2"}).code == 0);
}

}  // namespace dpt
