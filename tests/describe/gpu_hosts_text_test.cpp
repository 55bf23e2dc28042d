// What `dptrain plan --hosts` says of GPUs of several hosts, and what these cannot do.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "describe/host_text.h"
#include "describe/plan_text.h"
#include "golden_text.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 600, shape: [1, 16, 16]}}
  transforms: [to_tensor]
  batch_size: 48
model: [flatten, {linear: 100}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
device: cuda
parallel: ddp
)";

// The session of the first of these hosts, or why there is none. ranks: of each host.
std::string open(const std::vector<int>& ranks, const std::vector<std::string>& overrides,
                 std::unique_ptr<const Session>& out) {
  SessionQuery query{.world = 0, .runs = false, .sizes_only = true};
  query.hosts = SessionQuery::Hosts();
  for (const int n : ranks) {
    query.hosts->first_ranks.push_back(*query.world);
    *query.world += n;
  }
  return errors_of_session(kSpec, overrides, query, out);
}

std::unique_ptr<const Session> on_hosts(const std::vector<int>& ranks,
                                        const std::vector<std::string>& overrides = {}) {
  std::unique_ptr<const Session> out;
  const std::string errors = open(ranks, overrides, out);
  REQUIRE_MESSAGE(out, errors);
  return out;
}

std::string refused(const std::vector<std::string>& overrides) {
  std::unique_ptr<const Session> none;
  return open({1, 1}, overrides, none);
}

}  // namespace

TEST_CASE("a plan of GPUs of several hosts says what crosses between hosts") {
  check_golden(describe(*on_hosts({2, 2}), false), "describe/golden/gpu_hosts.txt");
  const std::string sharded =
      hosts_text(*on_hosts({1, 2}, {"parallel={ddp: {shard: optimizer, compress: bf16}}"}));
  CHECK_MESSAGE(has(sharded, "hosts: 2; one NCCL communicator of 3 GPUs"), sharded);
  CHECK_MESSAGE(has(sharded, "host 1    ranks 1..2      shards 1..2"), sharded);
  // 26,710 elements: two thirds of their halves, and of their weights.
  CHECK_MESSAGE(has(sharded, "sends 0.03 MiB of gradients and 0.07 of weights a step"), sharded);
  CHECK_MESSAGE(has(sharded, "checkpoint 0.14 MiB of optimizer states to host 0"), sharded);
}

TEST_CASE("each host's ranks use its GPUs from the first one on") {
  CHECK(on_hosts({2, 1, 1})->devices.gpu_of_worker == std::vector<int>{0, 1, 0, 0});
  CHECK(on_hosts({1, 2}, {"devices=[cuda:3, cuda:1]"})->devices.gpu_of_worker ==
        std::vector<int>{3, 3, 1});
}

TEST_CASE("what GPUs of several hosts cannot do is refused with the reason") {
  CHECK(refused({}).empty());
  for (const char* backend : {"gloo", "mpi"}) {
    const std::string why = refused({std::string("parallel={ddp: {backend: ") + backend + "}}"});
    CHECK_MESSAGE(has(why, std::string("GPUs of several machines exchange gradients by NCCL only: "
                                       "leave out `backend: ") +
                               backend + "`"),
                  why);
  }
  const std::string one_gpu = "on several machines each replica must be on one GPU";
  for (const char* parallel : {"parallel={pipeline: {stages: 2, chunks: 2, data_parallel: 2}}",
                               "parallel={pipeline: {stages: 2, chunks: 2, processes: true}}"}) {
    const std::string why = refused({parallel});
    CHECK_MESSAGE(has(why, one_gpu), why);
  }
  const std::string layers =
      refused({"model=[flatten, {linear: 100, device: 1}, relu, {linear: 10, device: 0}]"});
  CHECK_MESSAGE(has(layers, one_gpu), layers);
  CHECK(has(refused({"parallel=dp"}), "parallel mode 'dp' is one process on one machine"));
  CHECK_FALSE(refused({"parallel={local_sgd: {every: 8}}"}).empty());
  CHECK(has(refused({"log={every: 1, grad_norms: true}"}), "is measured on one machine only"));
  const std::string reproducible = refused({"reproducible={shards: 2}"});
  CHECK_MESSAGE(has(reproducible, "modes differ in the last bits; leave `reproducible` out"),
                reproducible);
}

}  // namespace dpt
