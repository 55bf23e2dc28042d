#include "parallel/host_sums.h"

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "comm/tree.h"

namespace dpt {
namespace {

// Hosts with so many ranks of one worker each.
Topology hosts_of(const std::vector<int>& ranks, int shards) {
  Topology out{.ranks = 0, .shards = shards, .reproducible = true};
  for (const int n : ranks) {
    out.first_ranks.push_back(out.ranks);
    out.ranks += n;
  }
  return out;
}

std::vector<Rows> rows_of(std::vector<std::pair<int64_t, int64_t>> pairs) {
  std::vector<Rows> out;
  for (const auto& [begin, end] : pairs) out.push_back({begin, end});
  return out;
}

float sum_of(std::vector<float> values) {
  std::vector<float*> parts;
  for (float& v : values) parts.push_back(&v);
  sum_tree(std::span<float* const>(parts), 0, 1);
  return values[0];
}

// The sum over all shards as hosts compute it.
float sum_over_hosts(const std::vector<float>& values, const std::vector<GradientPart>& parts) {
  std::vector<float> sums;
  for (const GradientPart& p : parts)
    sums.push_back(sum_of({values.begin() + p.shards.begin, values.begin() + p.shards.end}));
  for (const PartSum& s : completing_sums(parts, static_cast<int>(values.size())))
    sums[static_cast<size_t>(s.into)] += sums[static_cast<size_t>(s.from)];
  return sums[0];
}

}  // namespace

TEST_CASE("the shards of a host are a few subtrees") {
  CHECK(subtrees({0, 8}, 8) == rows_of({{0, 8}}));
  CHECK(subtrees({4, 8}, 8) == rows_of({{4, 8}}));
  CHECK(subtrees({3, 8}, 8) == rows_of({{3, 4}, {4, 8}}));
  CHECK(subtrees({1, 7}, 8) == rows_of({{1, 2}, {2, 4}, {4, 6}, {6, 7}}));
  CHECK(subtrees({0, 7}, 7) == rows_of({{0, 7}}));
  CHECK(subtrees({4, 7}, 7) == rows_of({{4, 7}}));  // the tree over 7 shards ends early
  CHECK(subtrees({4, 6}, 7) == rows_of({{4, 6}}));
  CHECK(subtrees({0, 0}, 8).empty());
}

TEST_CASE("an owner adds parts in the order of the tree") {
  const std::vector<GradientPart> parts = gradient_parts(hosts_of({1, 1, 1}, 8), false);
  CHECK(parts == std::vector<GradientPart>{{.shards = {0, 2}, .host = 0},
                                           {.shards = {2, 3}, .host = 0},
                                           {.shards = {3, 4}, .host = 1},
                                           {.shards = {4, 6}, .host = 1},
                                           {.shards = {6, 8}, .host = 2}});
  CHECK(completing_sums(parts, 8) == std::vector<PartSum>{{1, 2}, {0, 1}, {3, 4}, {0, 3}});
}

TEST_CASE("hosts get the bits of the tree, however shards are split over them") {
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int differs_from_plain_order = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    CAPTURE(trial);
    const int shards = 1 + below(70), hosts = 1 + below(std::min(shards, 12));
    std::vector<int> ranks;
    for (int h = 0; h < hosts; ++h) ranks.push_back(1 + below(4));
    const Topology topology = hosts_of(ranks, shards);
    std::vector<float> values;
    for (int s = 0; s < shards; ++s)
      values.push_back(std::ldexp(static_cast<float>(random() % 20001) - 10000, below(20)));
    const std::vector<GradientPart> parts = gradient_parts(topology, below(2) == 1);
    CHECK(sum_over_hosts(values, parts) == sum_of(values));
    float plain = 0;
    for (const float v : values) plain += v;
    differs_from_plain_order += plain != sum_of(values) ? 1 : 0;
  }
  CHECK(differs_from_plain_order > 1000);  // the values do tell orders apart
}

TEST_CASE("every shard is in one part, of the host that has it") {
  for (const bool compress : {false, true}) {
    const Topology topology = hosts_of({1, 8, 2}, 8);  // 11 ranks: some have no shard
    int64_t next = 0;
    for (const GradientPart& p : gradient_parts(topology, compress)) {
      CHECK(p.shards.begin == next);
      for (int64_t s = p.shards.begin; s < p.shards.end; ++s)
        CHECK(topology.host_of_shard(static_cast<int>(s)) == p.host);
      next = p.shards.end;
    }
    CHECK(next == 8);
  }
  // A host with one rank more than there are shards: it owns elements, but sends no gradients.
  const Topology empty = hosts_of({4, 1}, 4);
  CHECK(empty.shards_of_host(1) == Rows{});
  for (const GradientPart& p : gradient_parts(empty, false)) CHECK(p.host == 0);
}

TEST_CASE("with compress a host sends halves of its shards where these are fewer bytes") {
  // One shard: 2 bytes instead of 4. Two of one subtree: 4 either way. Three: 6 instead of 8.
  CHECK(gradient_parts(hosts_of({1, 1}, 2), true) ==
        std::vector<GradientPart>{{.shards = {0, 1}, .host = 0, .halves = true},
                                  {.shards = {1, 2}, .host = 1, .halves = true}});
  CHECK(gradient_parts(hosts_of({1, 1}, 4), true) ==
        std::vector<GradientPart>{{.shards = {0, 2}, .host = 0}, {.shards = {2, 4}, .host = 1}});
  CHECK(gradient_parts(hosts_of({1, 1}, 6), true).size() == 6);
  CHECK(gradient_parts(hosts_of({1, 1}, 6), false).size() == 4);
}

TEST_CASE("pieces cover all elements once, at multiples, in the order of hosts") {
  for (const int hosts : {1, 2, 3, 7})
    for (const size_t elements : {1, 15, 16, 17, 1000, 4096, 100000})
      for (const size_t multiple : {1, 16, 4096}) {
        CAPTURE(hosts);
        CAPTURE(elements);
        CAPTURE(multiple);
        const ElementOwners owners(elements, hosts, multiple, 5000);
        size_t next = 0;
        for (size_t b = 0; b < owners.buckets(); ++b) {
          CHECK(owners.bucket(b).begin == next);
          for (int h = 0; h < hosts; ++h) {
            const Bucket piece = owners.piece(b, h);
            CHECK(piece.begin == next);
            CHECK(piece.count() <= (5000 + multiple - 1) / multiple * multiple);
            if (piece.count() > 0) CHECK(piece.begin % multiple == 0);
            next = piece.end;
          }
          CHECK(owners.bucket(b).end == next);
        }
        CHECK(next == elements);
      }
}

TEST_CASE("a host with one part sends 2 (N - 1) / N of the gradients' bytes") {
  for (const int hosts : {2, 4, 8}) {
    const size_t elements = size_t{1} << 22;
    const ElementOwners owners(elements, hosts, 16);
    const Topology topology = hosts_of(std::vector<int>(static_cast<size_t>(hosts), 2), 8);
    for (int h = 0; h < hosts; ++h) {
      const ExchangeBytes bytes = exchange_bytes(gradient_parts(topology, false), owners, h);
      const auto n = static_cast<uint64_t>(hosts);
      CHECK(bytes.gradients == 4 * elements * (n - 1) / n);
      CHECK(bytes.weights == 4 * elements * (n - 1) / n);
    }
  }
  // Two parts of three shards: twice the gradients, the same weights.
  const ElementOwners owners(32000, 2, 16);
  const ExchangeBytes three = exchange_bytes(gradient_parts(hosts_of({1, 1}, 6), false), owners, 0);
  CHECK(three.gradients == 2 * three.weights);
}

}  // namespace dpt
