// The central promise: which samples stand in which shard decides a run's bits, and nothing else
// does.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "train/run_spec.h"

namespace dpt {
namespace {

std::string spec(const std::string& more = "") {
  return R"(
data:
  dataset: {synthetic_images: {samples: 203, test_samples: 57, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 32
model:
  - flatten
  - linear: 19
  - layer_norm
  - gelu
  - dropout: 0.3
  - linear: 10
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 3
log: {every: 1}
evaluate: true
)" + more;
}

void same(const Ran& a, const Ran& b) {
  CHECK(a.code == 0);
  CHECK_MESSAGE(b.code == 0, b.err);
  CHECK(!a.weights.empty());
  CHECK(data_of(a.weights) == data_of(b.weights));
  CHECK(a.step_losses() == b.step_losses());
  CHECK(a.losses() == b.losses());
}

TEST_CASE(
    "reproducible shards: single, dp and ddp with any number of workers end in the same bits") {
  const std::string text = spec("reproducible: {shards: 8}\n");
  const Ran one = run_spec(text, {"cores=1"});
  CHECK(one.step_losses().size() == 21);  // 203 in batches of 32: seven steps an epoch
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"cores=2"},
                                             {"cores=3"},
                                             {"parallel=dp", "devices=2", "cores=1"},
                                             {"parallel=dp", "devices=4", "cores=2"},
                                             {"parallel={dp: {loss: distributed}}", "devices=3"},
                                             {"parallel={dp: {output_device: 1}}", "devices=2"},
                                             {"parallel=ddp", "devices=1", "cores=1"},
                                             {"parallel=ddp", "devices=2", "cores=1"},
                                             {"parallel=ddp", "devices=4", "cores=1"},
                                             {"parallel=ddp", "devices=8", "cores=1"}}) {
    if (!kCanFork && how[0] == "parallel=ddp") continue;
    CAPTURE(how[0]);
    CAPTURE(how.back());
    same(one, run_spec(text, how));
  }
}

TEST_CASE("without it single and dp agree at an equal number of workers") {
  for (const std::string& workers : {std::string("2"), std::string("3")}) {
    const Ran single = run_spec(spec(), {"cores=" + workers});
    for (const std::string& loss : {std::string("gathered"), std::string("distributed")})
      same(single, run_spec(spec(), {"parallel={dp: {loss: " + loss + "}}", "cores=1",
                                     "devices=" + workers}));
  }
}

TEST_CASE("a divisor from the targets, clipping and accumulation change nothing of it") {
  const std::string text = spec("reproducible: {shards: 4}\naccumulate: 3\nclip_grad_norm: 0.5\n");
  const std::string loss =
      "loss={cross_entropy: {weight: [1,2,3,4,5,6,7,8,9,10], ignore_index: 3}}";
  const Ran one = run_spec(text, {loss, "cores=1"});
  same(one, run_spec(text, {loss, "cores=2"}));
  same(one, run_spec(text, {loss, "parallel=dp", "devices=3", "cores=1"}));
  if (kCanFork) same(one, run_spec(text, {loss, "parallel=ddp", "devices=2", "cores=2"}));
}

TEST_CASE("the same run twice ends in the same bits, another seed in others") {
  const Ran a = run_spec(spec(), {"cores=2"});
  same(a, run_spec(spec(), {"cores=2"}));
  CHECK(data_of(a.weights) != data_of(run_spec(spec(), {"cores=2", "seed=1"}).weights));
}

}  // namespace
}  // namespace dpt
