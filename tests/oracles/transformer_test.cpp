// A transformer of two blocks: torch's weights, output, gradients and first steps
// (tests/fixtures/transformer.py), and the same bits in every mode.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "checkpoint/model_file.h"
#include "layers/golden.h"
#include "layers/lowered.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using golden::at, golden::close, golden::content, golden::Document, golden::fill, golden::in_double,
    golden::number, golden::read_fixture, golden::Tensor, golden::tensor;

HostTensor& value(std::vector<HostTensor>& values, ValueId v) {
  return values[static_cast<size_t>(v)];
}

// A place for each value, in the type that it has in the graph, f32.
std::vector<HostTensor> in_single(const Graph& graph) {
  std::vector<HostTensor> values;
  for (const Value& v : graph.values) values.emplace_back(v.desc);
  return values;
}

// Three steps of SGD, in double by the plain loops or in f32 by the kernels of a run.
void check_steps(const Node& c, bool kernels, double tolerance) {
  const Tensor input = tensor(at(c, "input")), target = tensor(at(c, "target"));
  const Node model{.kind = Node::Kind::map, .entries = {{{"model", {}}, at(c, "model")}}};
  ModelText text(to_yaml(model), "cross_entropy");
  const Graph graph = build_graph(
      text.spec, {.input = {DType::i32, input.shape}, .target = {DType::i32, target.shape}},
      text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  std::vector<HostTensor> values = kernels ? in_single(graph) : in_double(graph);
  Generator generator(static_cast<uint64_t>(number(at(c, "seed"))));
  draw_parameters(graph, generator, [&](ValueId v, int64_t, std::span<const float> drawn) {
    fill(value(values, v), {drawn.begin(), drawn.end()});
  });
  fill(value(values, graph.input), input.data);
  fill(value(values, graph.target), target.data);
  fill(value(values, graph.divisor), {static_cast<double>(target.shape[0])});
  const double lr = number(at(c, "lr"));
  const auto same = [&](ValueId v, const std::vector<double>& expected) {
    CHECK_MESSAGE(close(content(value(values, v)), expected, tolerance), graph[v].name);
  };
  for (size_t step = 0; step < at(c, "losses").items.size(); ++step) {
    run_graph(graph, values, {}, {}, kernels ? cpu_kernels() : reference_kernels());
    same(graph.loss, {number(at(c, "losses").items[step])});
    if (step == 0) same(graph.output, tensor(at(c, "output")).data);
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      const ValueId p = graph.parameters[i], d = graph.gradients[i];
      if (step == 0) same(d, tensor(at(at(c, "gradients"), graph[p].name)).data);
      HostTensor &to = value(values, p), &by = value(values, d);
      for (size_t e = 0; e < to.size(); ++e) to.set(e, to.get(e) - lr * by.get(e));
    }
  }
}

std::string spec(const std::string& more) {
  return R"(
data: {dataset: {synthetic_tokens: {samples: 31, test_samples: 5, length: 5, vocabulary: 7}}, batch_size: 12}
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
epochs: 1
log: {every: 1}
evaluate: true
)" + more;
}

}  // namespace

TEST_CASE("a transformer's first weights, output, gradients and steps are torch's") {
  const Document fixture = read_fixture("transformer");
  for (const Node& c : at(fixture.root, "cases").items) {
    check_steps(c, false, 1e-13);  // sums of a few dozen terms in another order than torch's
    check_steps(c, true, 1e-5);    // of which some cancel, in f32
  }
}

TEST_CASE("a transformer ends in the same bits in every mode, mixed precision or not") {
  for (const char* more : {"", "precision: {bf16: {emulate: true}}\n"}) {
    CAPTURE(more);
    const std::string text = spec(std::string("reproducible: {shards: 4}\n") + more);
    const Ran one = run_spec(text, {"cores=1"});
    CHECK(one.step_losses().size() == 3);
    same(one, run_spec(text, {"cores=3"}));
    same(one, run_spec(text, {"parallel=dp", "devices=2", "cores=2"}));
    if (kCanFork) same(one, run_spec(text, {"parallel=ddp", "devices=4", "cores=1"}));
    same(run_spec(text, {"cores=1", "accumulate=3"}),
         run_spec(text, {"parallel={pipeline: {stages: 2, chunks: 3}}", "cores=1"}));
  }
}

}  // namespace dpt
