#include "parallel/batches.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace dpt {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Batches::Batches(const BatchQuery& query, const Topology& who) : query_(query), who_(who) {
  if (!query_.strided) {
    steps_ = query_.drop_last ? query_.samples / query_.batch_size
                              : ceil_div(query_.samples, query_.batch_size);
    return;
  }
  const int64_t longest = samples_of(0), shortest = samples_of(who_.ranks - 1);
  steps_ = query_.drop_last ? shortest / rank_batch() : ceil_div(longest, rank_batch());
}

int64_t Batches::samples_of(int rank) const {
  if (!query_.strided) return query_.samples;
  if (query_.pad) return ceil_div(query_.samples, who_.ranks);
  return ceil_div(std::max<int64_t>(0, query_.samples - rank), who_.ranks);
}

void Batches::step(int64_t step, StepRows& out) const {
  std::vector<int64_t>& ranks = out.rank_samples;
  ranks.assign(static_cast<size_t>(who_.ranks), 0);
  std::vector<int64_t> begins(ranks.size());
  if (query_.strided) {
    for (int r = 0; r < who_.ranks; ++r) {
      const int64_t n = samples_of(r), b = rank_batch();
      begins[static_cast<size_t>(r)] = std::min(n, step * b);
      ranks[static_cast<size_t>(r)] = std::min(n, (step + 1) * b) - begins[static_cast<size_t>(r)];
    }
  } else {
    begins[0] = step * query_.batch_size;
    ranks[0] = std::min(query_.samples, begins[0] + query_.batch_size) - begins[0];
  }
  out.samples = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  out.micro.resize(static_cast<size_t>(query_.accumulate));
  const int parts = static_cast<int>(query_.accumulate);
  std::vector<int64_t> counts(ranks.size());
  std::vector<Rows> pieces(ranks.size());
  for (int m = 0; m < parts; ++m) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      pieces[r] = chunk(ranks[r], parts)[static_cast<size_t>(m)];
      counts[r] = pieces[r].count();
    }
    const std::vector<Rows> shards = cut(who_, counts);
    std::vector<ShardRows>& rows = out.micro[static_cast<size_t>(m)];
    rows.resize(shards.size());
    int64_t before = 0;  // samples of the micro-batch on lower ranks
    int rank = 0;
    for (int s = 0; s < who_.shards; ++s) {
      const int own = query_.strided ? who_.rank_of(who_.owner(s)) : 0;
      for (; rank < own; ++rank) before += counts[static_cast<size_t>(rank)];
      const Rows& shard = shards[static_cast<size_t>(s)];
      const int64_t start = begins[static_cast<size_t>(own)] + pieces[static_cast<size_t>(own)].begin;
      rows[static_cast<size_t>(s)] = {{start + shard.begin, start + shard.end}, before + shard.begin};
    }
  }
  if (!query_.strided) {  // what each rank computes of the common order
    std::ranges::fill(ranks, 0);
    for (const auto& rows : out.micro)
      for (int s = 0; s < who_.shards; ++s)
        ranks[static_cast<size_t>(who_.rank_of(who_.owner(s)))] += rows[static_cast<size_t>(s)].rows.count();
  }
}

std::vector<int64_t> Batches::shard_sizes() const {
  std::set<int64_t> sizes;
  StepRows rows;
  // All steps but an epoch's last few are alike: ranks run out of samples within one step of each other.
  for (int64_t b = 0; b < steps_; b = b == 0 ? std::max<int64_t>(1, steps_ - 3) : b + 1) {
    step(b, rows);
    for (const auto& micro : rows.micro)
      for (const ShardRows& s : micro) sizes.insert(s.rows.count());
  }
  sizes.erase(0);
  return {sizes.begin(), sizes.end()};
}

}  // namespace dpt
