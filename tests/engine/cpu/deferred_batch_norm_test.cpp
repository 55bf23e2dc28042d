// parallel: {pipeline: {deferred_batch_norm: true}}: running statistics of whole batches.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/folder.h"
#include "formats/safetensors.h"
#include "layers/golden.h"
#include "skip.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

std::vector<double> numbers(const Node& list) {
  std::vector<double> out;
  for (const Node& n : list.items) out.push_back(golden::number(n));
  return out;
}

std::string rows_of(const golden::Document& fixture) {
  std::string csv;
  for (const Node& row : golden::at(fixture.root, "rows").items)
    csv += fmt::format("{}\n", fmt::join(numbers(row), ","));
  return csv;
}

TEST_CASE("statistics of chunks move the running ones once a batch, as torch's Pipe has it") {
  const golden::Document fixture = golden::read_fixture("deferred_batch_norm");
  const Folder folder;
  folder.write("t.csv", rows_of(fixture));
  int compared = 0;
  for (const Node& c : golden::at(fixture.root, "cases").items) {
    CAPTURE(c.where.line);
    const auto word = [&](const char* key) { return golden::at(c, key).text; };
    const Ran ran =
        run_spec(fmt::format(R"(
data: {{dataset: {{csv: {{path: {}, targets: [5, 6]}}}}, batch_size: {}, limit: {}, shuffle: false}}
model: [{{linear: 4}}, {{batch_norm1d: {{momentum: {}}}}}, sigmoid, {{linear: 2}}]
loss: mse_loss
optimizer: {{sgd: {}}}
steps: {}
parallel: {{pipeline: {{stages: 2, chunks: {}, deferred_batch_norm: true}}}}
)",
                             folder.file("t.csv"), word("batch"), word("limit"),
                             word("momentum") == "none" ? "null" : word("momentum"),
                             golden::at(fixture.root, "lr").text, word("steps"), word("chunks")),
                 {"cores=1"});
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    folder.write("model.safetensors", ran.weights);
    const SafeTensors file = SafeTensors::read(folder.file("model.safetensors"));
    const Node& state = golden::at(c, "state");
    CHECK(file.entries().size() == state.entries.size());
    for (const Node::Entry& e : state.entries) {
      const std::string name = e.key.value;
      CAPTURE(name);
      const auto* tensor = file.find(name);
      REQUIRE(tensor);
      const std::vector<double> expected = numbers(e.value);
      if (tensor->desc.dtype == DType::i64) {
        CHECK(*reinterpret_cast<const int64_t*>(tensor->data) ==
              static_cast<int64_t>(expected.at(0)));
        continue;
      }
      const auto* got = reinterpret_cast<const float*>(tensor->data);
      for (size_t i = 0; i < expected.size(); ++i) {
        // Five steps in float32 against double.
        CHECK(static_cast<double>(got[i]) == doctest::Approx(expected[i]).epsilon(2e-6));
        ++compared;
      }
    }
  }
  CHECK(compared == 4 * 50);
}

TEST_CASE("deferred statistics are the same whoever has which stage, whatever is computed again") {
  const std::string text = R"(
data: {dataset: {synthetic_images: {samples: 75, shape: [2, 6, 6]}}, transforms: [to_tensor], batch_size: 32}
model:
  - conv2d: {out_channels: 4, kernel_size: 3}
  - batch_norm2d
  - relu
  - conv2d: {out_channels: 4, kernel_size: 3}
  - batch_norm2d: {momentum: null}
  - flatten
  - linear: 10
loss: cross_entropy
optimizer: {sgd: 0.1}
epochs: 2
log: {every: 1}
)";
  const auto run = [&](const std::string& keys, const std::string& cores = "1",
                       const std::string& more = "seed=0") {
    return run_spec(text,
                    {fmt::format("parallel={{pipeline: {{{}}}}}", keys), "cores=" + cores, more});
  };
  const std::string deferred = "chunks: 4, deferred_batch_norm: true, ";
  const Ran one = run(deferred + "stages: 2");
  for (const char* keys :
       {"stages: 3", "schedule: gpipe", "checkpoint: always", "checkpoint: except_last",
        "schedule: interleaved_1f1b", "schedule: gpipe, checkpoint: always, stages: 3"}) {
    CAPTURE(keys);
    same(one, run(deferred + keys));
  }
  // The running statistics are all that differs.
  const Ran each = run("stages: 2, chunks: 4");
  CHECK(each.step_losses() == one.step_losses());
  CHECK(each.weights != one.weights);
  // Pieces of a batch in each of two accumulated ones: not all eight are one batch.
  same(run(deferred + "stages: 2", "1", "accumulate=2"),
       run(deferred + "stages: 3, schedule: gpipe", "1", "accumulate=2"));
  if (skip_without(kCanFork, "a process that may fork")) return;
  same(one, run(deferred + "stages: 3, processes: true"));
  const std::string replicas = deferred + "stages: 2, data_parallel: 2";
  for (const char* sync : {"sync_batch_norm=false", "sync_batch_norm=true"})
    same(run(replicas, "1", sync), run(replicas + ", processes: true", "1", sync));
  same(run(deferred + "stages: 2", "2"), run(deferred + "stages: 3, processes: true", "2"));
}

}  // namespace
}  // namespace dpt
