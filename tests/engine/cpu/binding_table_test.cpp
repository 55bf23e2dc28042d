// Which binding a shard group uses.
#include "engine/cpu/binding_table.h"

#include <set>

#include <doctest/doctest.h>

#include "base/error.h"
#include "engine/cpu/one_worker.h"

namespace dpt {
namespace {

MicroBatch rows(std::vector<int64_t> counts) {
  MicroBatch out;
  int64_t begin = 0;
  for (const int64_t n : counts) {
    out.push_back({.rows = {begin, begin + n}, .first_sample = begin});
    begin += n;
  }
  return out;
}

TEST_CASE("a binding has the rows of the shard group and the kind's program") {
  OneWorker one(kTinySpec);
  const BindingTable table(one.worker);
  Binding* const full = table.find(0, rows({8}), ProgramKind::train);
  Binding* const last = table.find(0, rows({4}), ProgramKind::train);
  Binding* const test = table.find(0, rows({5}), ProgramKind::test);
  REQUIRE(full);
  REQUIRE(last);
  REQUIRE(test);
  CHECK(full != last);
  CHECK(full->program().rows.total() == 8);
  CHECK(last->program().rows.total() == 4);
  CHECK(test->program().rows.total() == 5);
  CHECK(table.find(0, rows({8}), ProgramKind::train) == full);
  CHECK(table.find(0, rows({0}), ProgramKind::train) == nullptr);
  CHECK_THROWS_WITH_AS(table.find(0, rows({3}), ProgramKind::train),
                       "no program for the rows of shard 0", Error);
}

TEST_CASE("later micro-batches have bindings of their own, which share activations") {
  OneWorker one(kTinySpec, {"accumulate=2"});
  const BindingTable table(one.worker);
  Binding* const first = table.find(0, rows({4}), ProgramKind::train);
  Binding* const later = table.find(0, rows({4}), ProgramKind::train_more, 1);
  CHECK(first != later);
  CHECK(first->input() == later->input());
  CHECK(table.slot_count() == 1);
}

TEST_CASE("chunks in flight have activations of their own") {
  OneWorker one(kTinySpec, {"parallel={pipeline: {stages: 2, chunks: 4, cut: '1'}}"});
  const BindingTable table(one.worker);
  REQUIRE(table.slot_count() == 2);
  const auto of_chunk = [&](size_t chunk) {
    return table.find(0, rows({2}), ProgramKind::train_more, chunk);
  };
  CHECK(of_chunk(1) != of_chunk(2));
  CHECK(of_chunk(1)->input() != of_chunk(2)->input());
  CHECK(of_chunk(1) == of_chunk(3));
}

TEST_CASE("a worker owns its shard groups, its stages and a share of the parameters") {
  const std::vector<std::string> how = {"parallel=dp", "devices=2"};
  const OneWorker first(kTinySpec, how), second(kTinySpec, how, 1);
  CHECK(first.worker.own == std::vector<int>{0});
  CHECK(second.worker.own == std::vector<int>{1});
  CHECK(second.worker.shards(1) == Rows{1, 2});
  const auto elements = [](const OneWorker& one) {
    size_t out = 0;
    for (const UpdatePiece& p : one.worker.share) out += p.end - p.begin;
    return out;
  };
  CHECK(elements(first) + elements(second) >= 50);  // with what pads the parameters
  CHECK(first.worker.share.back().end <= second.worker.share.front().begin);
}

TEST_CASE("a worker prepares the fused gradients of its share alone") {
  const std::vector<std::string> how = {
      "parallel=dp", "devices=4",
      "model=[flatten, {linear: 64}, {linear: 64}, {linear: 64}, {linear: 64}, {linear: 10}]"};
  std::set<size_t> of_all;
  for (int number = 0; number < 4; ++number) {
    const OneWorker one(kTinySpec, how, number);
    const BindingTable table(one.worker);
    std::set<size_t> wanted, prepared;
    for (const UpdatePiece& p : one.worker.share)
      if (p.gradient_instruction >= 0) wanted.insert(static_cast<size_t>(p.gradient_instruction));
    for (int group = 0; group < one.worker.shard_groups(); ++group)
      table.find(group, rows({2, 2, 2, 2}), ProgramKind::train)
          ->run_each(Part::update, 0, [&](size_t i, const auto&) { prepared.insert(i); });
    CHECK(prepared == wanted);
    CHECK(prepared.size() < 4);  // of the five that the program has
    of_all.merge(prepared);
  }
  CHECK(of_all.size() == 5);
}

}  // namespace
}  // namespace dpt
