// Which programs a micro-batch uses.
#include "engine/program_kind.h"

#include <vector>

#include <doctest/doctest.h>

#include "train/run_spec.h"

namespace dpt {
namespace {

using Kinds = std::vector<ProgramKind>;
using enum ProgramKind;

Kinds kinds(size_t micro_batches, bool last_apart) {
  Kinds out;
  for (size_t m = 0; m < micro_batches; ++m)
    out.push_back(program_kind(m, micro_batches, last_apart));
  return out;
}

TEST_CASE("the first micro-batch writes gradients, later ones add, the last may have programs") {
  CHECK(kinds(1, false) == Kinds{train});
  CHECK(kinds(1, true) == Kinds{train});
  CHECK(kinds(3, false) == Kinds{train, train_more, train_more});
  CHECK(kinds(3, true) == Kinds{train, train_more, train_last});
  CHECK_FALSE(adds_gradients(train));
  CHECK_FALSE(adds_gradients(test));
  CHECK(adds_gradients(train_more));
  CHECK(adds_gradients(train_last));
}

TEST_CASE("only kinds of which several chunks are in flight have several slots") {
  CHECK(slots_of(train, 4) == 1);
  CHECK(slots_of(train_last, 4) == 1);
  CHECK(slots_of(train_more, 4) == 4);
  CHECK(slots_of(test, 4) == 4);
}

TEST_CASE("a session without accumulation has no programs of later micro-batches") {
  const char* const yaml = R"(
data: {dataset: {synthetic_images: {samples: 24, shape: [1, 2, 2]}}, batch_size: 8}
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
steps: 2
)";
  const auto one = session_of(yaml, {"cores=1"});
  CHECK(&programs_of(*one, train) == &one->model.programs);
  CHECK(programs_of(*one, train_more).empty());
  CHECK(programs_of(*one, train_last).empty());
  CHECK(&programs_of(*one, test) == &one->model.test_programs);
  const auto two = session_of(yaml, {"cores=1", "accumulate=2"});
  CHECK(&programs_of(*two, train_more) == &two->model.programs);
}

}  // namespace
}  // namespace dpt
