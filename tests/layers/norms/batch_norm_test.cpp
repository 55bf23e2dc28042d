#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "graph/interpret.h"
#include "layers/golden.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("batch_norm1d sums over the shards in training and keeps statistics for evaluation") {
  CHECK(lowered("model: [{batch_norm1d: }]", real({4, 3})) ==
        "0.channel_sums f64[7] = channel_sums(input)\n"
        "0.all_reduce f64[7] = all_reduce(0.channel_sums)\n"
        "0.update_running f32[3] = update_running(0.all_reduce, 0.running_mean, 0.running_var, "
        "0.num_batches_tracked)\n"
        "0.moments f64[6] = moments(0.all_reduce)\n"
        "0.batch_norm f32[4, 3] = batch_norm(input, 0.moments, 0.weight, 0.bias)\n");
  CHECK(lowered("model: [{batch_norm1d: {affine: false}}]", real({4, 3, 5}), {.training = false}) ==
        "0.running_moments f64[6] = running_moments(0.running_mean, 0.running_var)\n"
        "0.batch_norm f32[4, 3, 5] = batch_norm(input, 0.running_moments)\n");
  CHECK(lowered("model: [{batch_norm1d: {bias: false, track_running_stats: false}}]", real({4, 3}),
                {.training = false}) ==
        "0.channel_sums f64[7] = channel_sums(input)\n"
        "0.all_reduce f64[7] = all_reduce(0.channel_sums)\n"
        "0.moments f64[6] = moments(0.all_reduce)\n"
        "0.batch_norm f32[4, 3] = batch_norm(input, 0.moments, 0.weight)\n");
  CHECK(torch_layer("model: [{batch_norm1d: {eps: 0.001, momentum: null, affine: false}}]",
                    {2, 4, 5}) == "nn.BatchNorm1d(4, eps=0.001, momentum=None, affine=False)");
  // PyTorch takes any eps and momentum; only `batch_norm1d: 4` is mistaken for channels.
  CHECK(torch_layer("model: [{batch_norm1d: {eps: 1.5, momentum: 2}}]", {2, 4}) ==
        "nn.BatchNorm1d(4, eps=1.5, momentum=2.0)");
  CHECK(complaint(lowered("model: [{batch_norm1d: 4}]", real({2, 4})))
            .find("the number of channels is inferred") != std::string::npos);
  CHECK(complaint(lowered("model: [{batch_norm1d: }]", real({2, 4, 5, 6}))) ==
        "error: batch_norm1d takes [N, C] or [N, C, L], not [2, 4, 5, 6]; for images use "
        "batch_norm2d");
  CHECK(complaint(lowered("model: [batch_norm1d]", real({2, 4, 5, 6, 7}))) ==
        "error: batch_norm1d takes [N, C] or [N, C, L], not [2, 4, 5, 6, 7]; for volumes use "
        "batch_norm3d");
}

namespace {

using namespace golden;

// One layer, its input the rows of an embedding's table where that shall have a gradient.
struct Net {
  Graph graph;
  std::vector<HostTensor> values;

  Net(const Node& c, const Shape& x, bool training) {
    Spec spec;
    spec.loss = choice(loss_registry(), "mse_loss", map({{"reduction", "sum"}}));
    const Shape rows(x.extents().first(static_cast<size_t>(x.rank() - 1)));
    if (training)
      spec.model.push_back(
          layer("embedding", map({{"num_embeddings", std::to_string(rows.elements())},
                                  {"embedding_dim", std::to_string(x.back())}})));
    spec.model.push_back(layer(at(c, "layer").text, at(c, "args")));
    Diagnostics d;
    const TensorDesc in = training ? TensorDesc{DType::i32, rows} : TensorDesc{DType::f32, x};
    graph = build_graph(spec,
                        {.input = in,
                         .target = {DType::f32, x},
                         .mode = {.training = training},
                         .loss = training,
                         .differentiate = training},
                        d);
    REQUIRE_MESSAGE(d.ok(), d.render());
    values = in_double(graph);
    const size_t first = training ? 1 : 0;
    const auto& parameters = at(c, "parameters").entries;
    REQUIRE(graph.parameters.size() == parameters.size() + first);
    for (size_t i = 0; i < parameters.size(); ++i)
      fill(of(graph.parameters[i + first]), tensor(parameters[i].value).data);
  }
  HostTensor& of(ValueId v) { return values[static_cast<size_t>(v)]; }
};

// The statistics after each of the steps, which the next one begins with.
std::vector<std::vector<double>> check_training(const Node& c) {
  std::vector<std::vector<double>> buffers;
  for (const Node& step : at(c, "steps").items) {
    const Tensor input = tensor(at(step, "input"));
    Net net(c, input.shape, true);
    const Graph& g = net.graph;
    if (buffers.empty())
      for (ValueId v : g.buffers) buffers.emplace_back(net.of(v).size(), g[v].origin->init.a);
    for (size_t i = 0; i < buffers.size(); ++i) fill(net.of(g.buffers[i]), buffers[i]);
    std::vector<double> numbers(net.of(g.input).size());
    std::iota(numbers.begin(), numbers.end(), 0);
    fill(net.of(g.input), numbers);
    fill(net.of(g.divisor), {1});
    fill(net.of(g.parameters[0]), input.data);
    run_graph(g, net.values);
    // Sums of a dozen terms of up to 20 in another order than torch's.
    constexpr double kTolerance = 1e-13;
    CHECK(close(content(net.of(g.output)), tensor(at(step, "output")).data, kTolerance));
    const std::vector<double> upstream = tensor(at(step, "upstream")).data;
    for (size_t i = 0; i < upstream.size(); ++i)
      net.of(g.target).set(i, net.of(g.output).get(i) - upstream[i] / 2);
    run_graph(g, net.values);
    std::vector<std::vector<double>> wanted = {tensor(at(step, "input_gradient")).data};
    for (const Node::Entry& e : at(step, "parameter_gradients").entries)
      wanted.push_back(tensor(e.value).data);
    for (size_t i = 0; i < wanted.size(); ++i)
      CHECK(close(content(net.of(g.gradients[i])), wanted[i], kTolerance));
    const auto& after = at(step, "buffers").entries;
    REQUIRE(after.size() == g.updates.size());
    for (size_t i = 0; i < after.size(); ++i) {
      buffers[i] = content(net.of(g.updates[i].next));
      CHECK(g[g.updates[i].buffer].name.ends_with(after[i].key.value));
      CHECK(close(buffers[i], tensor(after[i].value).data, kTolerance));
    }
  }
  return buffers;
}

}  // namespace

TEST_CASE("batch norm gives torch's numbers, gradients and running statistics") {
  const Document fixture = read_fixture("batch_norm");
  for (const Node& c : at(fixture.root, "cases").items) {
    CAPTURE(at(c, "layer").text);
    const auto buffers = check_training(c);
    const Tensor input = tensor(at(at(c, "evaluation"), "input"));
    Net net(c, input.shape, false);
    for (size_t i = 0; i < buffers.size(); ++i) fill(net.of(net.graph.buffers[i]), buffers[i]);
    fill(net.of(net.graph.input), input.data);
    run_graph(net.graph, net.values);
    CHECK(close(content(net.of(net.graph.output)), tensor(at(at(c, "evaluation"), "output")).data,
                1e-13));
  }
}

TEST_CASE("batch_norm2d takes images") {
  CHECK(torch_layer("model: [batch_norm2d]", {2, 4, 5, 5}) == "nn.BatchNorm2d(4)");
  CHECK(complaint(lowered("model: [batch_norm2d]", real({2, 4, 5}))) ==
        "error: batch_norm2d takes [N, C, H, W], not [2, 4, 5]; use batch_norm1d");
  CHECK(complaint(lowered("model: [batch_norm2d]", real({2, 4, 5, 6, 7}))) ==
        "error: batch_norm2d takes [N, C, H, W], not [2, 4, 5, 6, 7]; for volumes use "
        "batch_norm3d");
}

// Its numbers are those of batch_norm2d, in whose test they are compared with torch's.
TEST_CASE("batch_norm3d takes volumes") {
  CHECK(torch_layer("model: [batch_norm3d]", {2, 4, 5, 5, 5}) == "nn.BatchNorm3d(4)");
  CHECK(lowered("model: [batch_norm3d]", real({2, 4, 5, 5, 5}), {.training = false}) ==
        "0.running_moments f64[8] = running_moments(0.running_mean, 0.running_var)\n"
        "0.batch_norm f32[2, 4, 5, 5, 5] = batch_norm(input, 0.running_moments, 0.weight, "
        "0.bias)\n");
  CHECK(complaint(lowered("model: [batch_norm3d]", real({2, 4, 5, 5}))) ==
        "error: batch_norm3d takes [N, C, D, H, W], not [2, 4, 5, 5]; for images use "
        "batch_norm2d");
}

}  // namespace dpt
