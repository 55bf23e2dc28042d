#include "report/host_time.h"

#include <doctest/doctest.h>

#include "report/sessions_on_hosts.h"

namespace dpt {
namespace {

// 65,546 parameters.
const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 8192, shape: [1, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 1024
model: [flatten, {linear: 874}, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.1}
epochs: 1
cores: 1
parallel: ddp
)";

const LinkModel kLink{.name = "test", .bandwidth = 1e9, .latency = 25e-6, .per_message = 5e-6};

size_t buckets_of(const Session& s) { return s.shares.hosts->owners().buckets(); }

HostStepTime direct(const Session& s, const StepCosts& costs, const LinkModel& link = kLink) {
  return predict_host_step(s, costs, link, SumAlgorithm::direct);
}

HostStepTime direct_on(int hosts, const std::vector<std::string>& overrides) {
  const auto s = session_on_hosts(kSpec, hosts, overrides);
  REQUIRE(s);
  return direct(*s, costs_per_sample(*s, 1e-3, 1e-3));
}

}  // namespace

TEST_CASE("one host exchanges nothing") {
  const auto s = session_on_hosts(kSpec, 1);
  const HostStepTime t = direct(*s, costs_per_sample(*s, 0, 3e-3));
  CHECK(t.exchange == 0);
  CHECK(t.local == doctest::Approx(1.024 + 3e-3));
}

TEST_CASE("with one bucket, gradients and weights take what the formula says") {
  for (const int hosts : {2, 4, 8, 64}) {
    CAPTURE(hosts);
    const auto s = session_on_hosts(kSpec, hosts);
    REQUIRE(buckets_of(*s) == 1);
    const HostStepTime t = direct(*s, costs_per_sample(*s, 0, 0));
    CHECK(t.local == doctest::Approx(1.024 / hosts));
    const double bytes = 4.0 * static_cast<double>(s->model.layout.stored);
    // Before them, the link carries a message of results to each other host.
    const double results = (hosts - 1) * (kLink.per_message + 32 / kLink.bandwidth);
    const double sums = 2 * seconds(kLink, direct_transfer(hosts, bytes));
    // Pieces are whole cache lines, so the largest may have up to one more than its share.
    CHECK(t.exchange >= results + sums);
    CHECK(t.exchange <= results + sums + 2 * (hosts - 1) * 64 / kLink.bandwidth);
  }
}

TEST_CASE("what is summed and updated while a bucket is on its way takes no time of its own") {
  const std::vector<std::string> small = {"parallel={ddp: {bucket_cap_mb: 0.03}}"};
  const auto s = session_on_hosts(kSpec, 2, small);
  REQUIRE(s);
  REQUIRE(buckets_of(*s) > 4);
  const LinkModel slow{.name = "slow", .bandwidth = 1e6, .latency = 0, .per_message = 0};
  const StepCosts idle = costs_per_sample(*s, 0, 0), busy = costs_per_sample(*s, 0.1, 0.1);
  const double link = direct(*s, idle, slow).exchange;
  const HostStepTime both = direct(*s, busy, slow);
  CHECK(both.local == doctest::Approx(1.024 / 2 + 0.2));
  CHECK(both.exchange < link);
  CHECK(both.total() > 0.512 + link);         // the first sum and the last update
  CHECK(both.total() < 0.512 + link + 0.15);  // of at least five buckets
  // Without a link's delay only local work is left.
  const LinkModel ideal{.name = "ideal", .bandwidth = 1e30, .latency = 0, .per_message = 0};
  CHECK(direct(*s, busy, ideal).exchange == doctest::Approx(0));
}

TEST_CASE("more bytes and more exchanges take longer") {
  const double plain = direct_on(4, {}).exchange;
  CHECK(direct_on(4, {"model=[flatten, {linear: 2000}, {linear: 10}]"}).exchange > plain);
  // An exchange of norm partials before the updates; one of divisors before the first micro-batch.
  const double latency = kLink.latency + 3 * kLink.per_message;
  CHECK(direct_on(4, {"clip_grad_norm=1"}).exchange >= plain + latency);
  CHECK(direct_on(4, {"loss={cross_entropy: {ignore_index: 3}}"}).exchange >= plain + latency);
  // Half the bytes of gradients.
  CHECK(direct_on(4, {"parallel={ddp: {compress: fp16}}"}).exchange < plain);
}

TEST_CASE("batch norm over all hosts exchanges sums at each sync point") {
  const std::vector<std::string> local = {
      "model=[flatten, {linear: 874}, batch_norm1d, {linear: 10}]"};
  std::vector<std::string> synced = local;
  synced.emplace_back("sync_batch_norm=true");
  const auto s = session_on_hosts(kSpec, 4, synced);
  REQUIRE(s->plan.sync_points() == 2);
  CHECK(direct_on(4, synced).exchange >= direct_on(4, local).exchange + 2 * kLink.latency);
}

TEST_CASE("a ring takes as long for bytes, and longer for hops") {
  const auto s = session_on_hosts(kSpec, 64);
  const StepCosts costs = costs_per_sample(*s, 1e-3, 1e-3);
  const auto ring = [&](const LinkModel& link) {
    return predict_host_step(*s, costs, link, SumAlgorithm::ring);
  };
  // 2 (N - 1) hops in place of 2, and 2 (N - 1) messages fewer.
  CHECK(ring(kLink).total() - direct(*s, costs).total() ==
        doctest::Approx(2 * 62 * kLink.latency - 2 * 63 * kLink.per_message));
  const LinkModel bytes_only{.name = "bytes", .bandwidth = 1e8, .latency = 0, .per_message = 0};
  CHECK(ring(bytes_only).total() == doctest::Approx(direct(*s, costs, bytes_only).total()));
}

}  // namespace dpt
