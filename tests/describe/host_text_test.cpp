#include "describe/host_text.h"

#include <doctest/doctest.h>

#include "data/folder.h"
#include "describe/plan_text.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

constexpr const char* kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 64, shape: [1, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 16
model: [flatten, {linear: 1000}, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.1}
epochs: 1
cores: 1
parallel: ddp
reproducible: 6
)";

// The session of the first of these hosts; the ranks of each.
std::unique_ptr<const Session> on_hosts(const std::vector<int>& ranks,
                                        const std::vector<std::string>& overrides = {}) {
  SessionQuery query{.runs = false, .sizes_only = true};
  query.hosts = SessionQuery::Hosts();
  query.world = 0;
  for (const int n : ranks) {
    query.hosts->first_ranks.push_back(*query.world);
    *query.world += n;
  }
  std::unique_ptr<const Session> out;
  const std::string errors = errors_of_session(kSpec, overrides, query, out);
  REQUIRE_MESSAGE(out, errors);
  return out;
}

}  // namespace

// 75,010 parameters, 4 bytes each, and 6 shards of which a host has 2 or 3.
TEST_CASE("a plan of several hosts says what each has and sends") {
  CHECK(hosts_text(*on_hosts({1, 1, 1})) ==
        "hosts: 3; gradients in 1 bucket of at most 0.29 MiB\n"
        "  host 0    ranks 0..0      shards 0..1      in 1 part    sends 0.19 MiB of gradients and "
        "0.19 of weights a step\n"
        "  host 1    ranks 1..1      shards 2..3      in 1 part    sends 0.19 MiB of gradients and "
        "0.19 of weights a step\n"
        "  host 2    ranks 2..2      shards 4..5      in 1 part    sends 0.19 MiB of gradients and "
        "0.19 of weights a step\n");
  const std::string two = hosts_text(*on_hosts({1, 1}));
  CHECK_MESSAGE(has(two, "shards 0..2      in 2 parts   sends 0.29 MiB of gradients and 0.14 "),
                two);
  CHECK(has(hosts_text(*on_hosts(std::vector<int>(20, 1))), "  and 4 more\n"));
  CHECK(has(describe(*on_hosts({1, 1}), false), "mode: ddp: 2 ranks on 2 hosts, "));
}

// 75,010 parameters: the last layer's 10,010 fill two buckets of 16 KiB, and half of a third.
TEST_CASE("a plan of several hosts says which buckets are sent during the backward pass") {
  const std::unique_ptr<const Session> two =
      on_hosts({1, 1}, {"parallel={ddp: {bucket_cap_mb: 0.015625}}"});
  const std::string hosts = hosts_text(*two);
  CHECK_MESSAGE(has(hosts, "19 buckets of at most 0.02 MiB, 2 sent during the backward pass\n"),
                hosts);
  const std::string text = describe(*two, false);
  CHECK_MESSAGE(has(text, "backward to bucket 1\n"), text);
}

TEST_CASE("what several hosts cannot do is refused with the reason") {
  const auto refused = [](const std::vector<std::string>& overrides) {
    SessionQuery query{.world = 2, .runs = false, .sizes_only = true};
    query.hosts = {.first_ranks = {0, 1}, .host = 0, .cores_per_rank = 1};
    std::unique_ptr<const Session> none;
    return errors_of_session(kSpec, overrides, query, none);
  };
  CHECK(has(refused({"parallel=dp"}),
            "parallel mode 'dp' is one process on one machine, whose "
            "threads share memory; on several machines write "
            "`parallel: ddp`"));
  CHECK(has(refused({"parallel=single"}), "parallel mode 'single' is one process"));
  CHECK(has(refused({"reproducible={shards: 6, gradients: fused}"}), "write `gradients: stored`"));
  CHECK(has(refused({"log={every: 1, grad_norms: true}"}), "is measured on one machine only"));
  CHECK(has(refused({"parallel={local_sgd: {every: 8}}"}),
            "replicas that average their weights cannot span several machines yet"));
  CHECK(has(refused({"model=[flatten, {linear: 8}, batch_norm1d, {linear: 10}]",
                     "sync_batch_norm=true", "data.batch_size=5"}),
            "fewer samples than there are shards"));
  CHECK(has(refused({"parallel={pipeline: {stages: 2, processes: true}}"}),
            "on several machines the stages of a replica must be threads of one rank: leave "
            "`processes` out, and start one rank for each replica"));
  CHECK(has(
      refused({"parallel={pipeline: {stages: 2, data_parallel: 2}}",
               "model=[flatten, {linear: 8}, batch_norm1d, {linear: 10}]", "sync_batch_norm=true"}),
      "sums over several machines only if a replica has one device"));
  CHECK(has(refused({"parallel={pipeline: {stages: 2, data_parallel: 3}}"}),
            "2 ranks were started; 3 replicas of 2 stages take 6, one for each device, or 3, one "
            "for each replica"));
  CHECK(refused({"parallel={pipeline: {stages: 2, data_parallel: 2}}"}).empty());
  CHECK(refused({}).empty());
}

}  // namespace dpt
