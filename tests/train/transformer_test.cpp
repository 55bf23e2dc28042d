// A transformer of two blocks: torch's weights, output, gradients and first steps
// (tests/fixtures/transformer.py), and the same bits in every mode.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "layers/golden.h"
#include "layers/lowered.h"
#include "train/checkpoint.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using namespace golden;

HostTensor& value(std::vector<HostTensor>& values, ValueId v) {
  return values[static_cast<size_t>(v)];
}

// The plain loops in double, three steps of SGD.
void check_steps(const Node& c) {
  const Tensor input = tensor(at(c, "input")), target = tensor(at(c, "target"));
  const Node model{.kind = Node::Kind::map, .entries = {{{"model", {}}, at(c, "model")}}};
  ModelText text(to_yaml(model), "cross_entropy");
  const Graph graph = build_graph(
      text.spec, {.input = {DType::i32, input.shape}, .target = {DType::i32, target.shape}},
      text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  std::vector<HostTensor> values = in_double(graph);
  Generator generator(static_cast<uint64_t>(number(at(c, "seed"))));
  draw_parameters(graph, generator, [&](ValueId v, std::span<const float> first) {
    fill(value(values, v), {first.begin(), first.end()});
  });
  fill(value(values, graph.input), input.data);
  fill(value(values, graph.target), target.data);
  fill(value(values, graph.divisor), {static_cast<double>(target.shape[0])});
  const double lr = number(at(c, "lr"));
  for (size_t step = 0; step < at(c, "losses").items.size(); ++step) {
    run_graph(graph, values);
    // Sums of a few dozen terms in another order than torch's.
    CHECK(close(content(value(values, graph.loss)), {number(at(c, "losses").items[step])}, 1e-13));
    if (step == 0)
      CHECK(close(content(value(values, graph.output)), tensor(at(c, "output")).data, 1e-13));
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      HostTensor &p = value(values, graph.parameters[i]), &d = value(values, graph.gradients[i]);
      const std::string& name = graph[graph.parameters[i]].name;
      if (step == 0)
        CHECK_MESSAGE(close(content(d), tensor(at(at(c, "gradients"), name)).data, 1e-13), name);
      for (size_t e = 0; e < p.size(); ++e) p.set(e, p.get(e) - lr * d.get(e));
    }
  }
}

std::string spec(const std::string& more) {
  return R"(
data: {dataset: {synthetic_tokens: {samples: 43, test_samples: 9, length: 5, vocabulary: 7}}, batch_size: 12}
model:
  - embedding: {num_embeddings: 7, embedding_dim: 12}
  - residual: {body: [layer_norm, {multihead_attention: {num_heads: 3, causal: true}}]}
  - residual: {body: [layer_norm, {linear: 20}, gelu, {dropout: 0.1}, {linear: 12}]}
  - residual: {body: [layer_norm, {multihead_attention: 2}]}
  - residual: {body: [layer_norm, {linear: 20}, gelu, {dropout: 0.1}, {linear: 12}]}
  - flatten
  - linear: 7
loss: cross_entropy
optimizer: {adam_w: 0.01}
epochs: 2
log: {every: 1}
evaluate: true
)" + more;
}

}  // namespace

TEST_CASE("a transformer's first weights, output, gradients and steps are torch's") {
  const Document fixture = read_fixture("transformer");
  for (const Node& c : at(fixture.root, "cases").items) check_steps(c);
}

TEST_CASE("a transformer ends in the same bits in every mode, mixed precision or not") {
  for (const char* more : {"", "precision: {bf16: {emulate: true}}\n"}) {
    CAPTURE(more);
    const std::string text = spec(std::string("reproducible: {shards: 4}\n") + more);
    const Ran one = run_spec(text, {"cores=1"});
    CHECK(one.step_losses().size() == 8);
    same(one, run_spec(text, {"cores=3"}));
    same(one, run_spec(text, {"parallel=dp", "devices=2", "cores=2"}));
    if (kCanFork) same(one, run_spec(text, {"parallel=ddp", "devices=4", "cores=1"}));
    same(run_spec(text, {"cores=1", "accumulate=3"}),
         run_spec(text, {"parallel={pipeline: {stages: 2, chunks: 3}}", "cores=1"}));
  }
}

}  // namespace dpt
