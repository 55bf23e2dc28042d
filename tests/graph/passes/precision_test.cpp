#include "graph/passes/precision.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {
namespace {

using Level = PrecisionPolicy::Level;

Graph graph_of(const std::string& model, const PrecisionPolicy& policy, TensorDesc x, TensorDesc y,
               const std::string& loss = "mse_loss", bool differentiate = false) {
  ModelText text(model, loss);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  Graph graph = build_graph(
      text.spec,
      {.input = x, .target = y, .differentiate = differentiate, .classes = 5, .precision = policy},
      text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  return graph;
}

// The type of what the last layer that is asked for makes.
std::string type_of(const Graph& graph, const std::string& layer) {
  std::string out = "no such layer";
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].layer == layer && graph.nodes[i].op->name != "cast" &&
        graph.nodes[i].part != Part::backward)
      out = name_of(graph[graph.nodes[i].out[0]].desc.dtype);
  return out;
}

constexpr PrecisionPolicy kCpu{.level = Level::autocast};
constexpr PrecisionPolicy kCuda{.level = Level::autocast, .half = DType::f16, .cuda_lists = true};

struct Row {
  std::string layer;  // after a convolution
  std::string_view cpu, cuda;
};

}  // namespace

TEST_CASE("operators have the classes of torch's autocast") {
  // The CPU's as torch 2.13 gives them (module(conv(x)).dtype in torch.autocast("cpu")), CUDA's
  // from the lists of its documentation.
  const Row rows[] = {{"identity", "bf16", "f16"},
                      {"relu", "bf16", "f16"},
                      {"relu6", "bf16", "f16"},
                      {"prelu", "bf16", "f16"},
                      {"leaky_relu", "bf16", "f16"},
                      {"elu", "bf16", "f16"},
                      {"selu", "bf16", "f16"},
                      {"gelu", "bf16", "f16"},
                      {"silu", "bf16", "f16"},
                      {"sigmoid", "bf16", "f16"},
                      {"tanh", "bf16", "f16"},
                      {"softplus", "bf16", "f32"},
                      {"hardswish", "bf16", "f16"},
                      {"mish", "bf16", "f16"},
                      {"hardtanh", "bf16", "f16"},
                      {"hardsigmoid", "bf16", "f16"},
                      {"celu", "bf16", "f16"},
                      {"softsign", "bf16", "f16"},
                      {"logsigmoid", "bf16", "f16"},
                      {"hardshrink", "bf16", "f16"},
                      {"softshrink", "bf16", "f16"},
                      {"tanhshrink", "bf16", "f16"},
                      {"threshold: {threshold: 0, value: 1}", "bf16", "f16"},
                      {"glu: -1", "bf16", "f16"},
                      {"permute: [2, 1, 3]", "bf16", "f16"},
                      {"rms_norm: [4, 4]", "bf16", "f32"},
                      {"dropout2d", "bf16", "f16"},
                      {"adaptive_max_pool2d: 1", "bf16", "f16"},
                      {"upsample: {scale_factor: 2, mode: bilinear}", "bf16", "f32"},
                      {"upsample: {scale_factor: 2, mode: bicubic}", "bf16", "f32"},
                      {"upsample: {scale_factor: 2, mode: nearest-exact}", "bf16", "f32"},
                      {"pad: {padding: 1, mode: circular}", "bf16", "f16"},
                      {"softmax: {dim: 1}", "bf16", "f32"},
                      {"log_softmax: {dim: 1}", "bf16", "f32"},
                      {"dropout", "bf16", "f16"},
                      {"layer_norm: [4, 4]", "bf16", "f32"},
                      {"group_norm: 1", "bf16", "f32"},
                      {"batch_norm2d", "bf16", "f16"},
                      {"max_pool2d: 2", "bf16", "f16"},
                      {"avg_pool2d: 2", "bf16", "f16"},
                      {"adaptive_avg_pool2d: 1", "bf16", "f16"},
                      {"upsample: {scale_factor: 2}", "bf16", "f32"},
                      {"pad: 1", "bf16", "f16"},
                      {"flatten", "bf16", "f16"}};
  for (const Row& row : rows) {
    CAPTURE(row.layer);
    const std::string layer =
        row.layer.find(':') == std::string::npos ? row.layer + ": {}" : row.layer;
    const std::string model = "model:\n  - conv2d: {out_channels: 5, kernel_size: 3}\n  - " +
                              layer + "\n    name: it\n  - flatten\n  - linear: 2\n";
    const Graph cpu = graph_of(model, kCpu, real({2, 4, 6, 6}), real({2, 2}));
    const Graph cuda = graph_of(model, kCuda, real({2, 4, 6, 6}), real({2, 2}));
    if (row.layer != "identity") {
      CHECK(type_of(cpu, "it") == row.cpu);
      CHECK(type_of(cuda, "it") == row.cuda);
    }
    CHECK(type_of(cpu, "0") == "bf16");
    CHECK(type_of(cpu, "3") == "bf16");
    CHECK(cpu[cpu.output].desc.dtype == DType::f32);
  }
}

TEST_CASE("what follows its input stays in f32 before the first product; an embedding too") {
  CHECK(type_of(graph_of("model: [relu, {linear: 2}]", kCpu, real({3, 4}), real({3, 2})), "0") ==
        "f32");
  const Graph g = graph_of(
      "model: [{embedding: {num_embeddings: 9, embedding_dim: 4}}, flatten, "
      "{linear: 2}]",
      kCpu, numbers({3, 2}), real({3, 2}));
  CHECK(type_of(g, "0") == "f32");
  CHECK(type_of(g, "2") == "bf16");
}

TEST_CASE("where types meet the wider one wins") {
  const Graph g = graph_of(
      "model:\n  - relu: {}\n    name: a\n  - linear: 4\n    name: b\n  - add: {}\n"
      "    from: [a, b]\n    name: c\n  - linear: 2\n",
      kCpu, real({3, 4}), real({3, 2}));
  CHECK(type_of(g, "c") == "f32");
}

TEST_CASE("losses compute in f32, gradients of weights are f32, a weight is cast once") {
  for (const char* loss :
       {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "bce_with_logits_loss", "kl_div",
        "poisson_nll_loss", "soft_margin_loss"}) {
    const Graph g = graph_of("model: [{linear: 4}, relu, {linear: 2}]", kCpu, real({3, 4}),
                             real({3, 2}), loss, true);
    CAPTURE(g.str());
    for (size_t i = 0; i < g.parameters.size(); ++i) {
      CHECK(g[g.parameters[i]].desc.dtype == DType::f32);
      CHECK(g[g.gradients[i]].desc.dtype == DType::f32);
    }
    int casts = 0;
    for (const GraphNode& n : g.nodes) {
      if (n.op->name == "cast" && n.in[0] == g.parameters[2]) ++casts;
      if (n.op->name == "linear_weight_gradient") CHECK(g[n.in[0]].desc.dtype == DType::bf16);
      if (n.op->name == loss) CHECK(g[n.in[0]].desc.dtype == DType::f32);
    }
    CHECK(casts == 1);  // forward and backward
  }
}

TEST_CASE("o2 puts all but batch normalisation and the loss in the half, o0 nothing") {
  const std::string model =
      "model: [{linear: 8}, batch_norm1d, {layer_norm: 8}, softplus, {linear: 5}]";
  const Graph g = graph_of(model, {.level = Level::model, .cuda_lists = true}, real({3, 4}),
                           numbers({3}), "cross_entropy");
  for (const char* layer : {"0", "1", "2", "3", "4"}) CHECK(type_of(g, layer) == "bf16");
  for (const GraphNode& n : g.nodes) {
    if (n.op->name == "batch_norm") CHECK(g[n.in[2]].desc.dtype == DType::f32);
    if (n.op->name == "layer_norm") CHECK(g[n.in[1]].desc.dtype == DType::bf16);
    if (n.op->name == "layer_norm") CHECK(g[n.out[1]].desc.dtype == DType::f32);  // its mean
    if (n.op->name == "cross_entropy") CHECK(g[n.in[0]].desc.dtype == DType::f32);
  }
  const Graph none =
      graph_of(model, {.level = Level::none}, real({3, 4}), numbers({3}), "cross_entropy");
  CHECK(std::ranges::none_of(none.nodes, [](auto& n) { return n.op->name == "cast"; }));
}

TEST_CASE("a scaled loss: the model's output gets its gradient times the scale") {
  const Graph g = graph_of("model: [{linear: 2}]",
                           {.level = Level::autocast, .half = DType::f16, .scales = true},
                           real({3, 4}), real({3, 2}), "mse_loss", true);
  REQUIRE(g.scale != kNoValue);
  const auto scale = std::ranges::find_if(g.nodes, [](auto& n) { return n.op->name == "scale"; });
  REQUIRE(scale != g.nodes.end());
  CHECK(scale->out[0] == g.output_gradient);
  CHECK(scale->part == Part::loss);
}

TEST_CASE("bce_loss is refused with CUDA's lists, as torch does") {
  ModelText text("model: [{linear: 2}, sigmoid]", "bce_loss");
  build_graph(text.spec, {.input = real({3, 4}), .target = real({3, 2}), .precision = kCuda},
              text.diagnostics);
  CHECK(text.diagnostics.render().find("use bce_with_logits_loss") != std::string::npos);
  CHECK(graph_of("model: [{linear: 2}, sigmoid]", kCpu, real({3, 4}), real({3, 2}), "bce_loss")
            .output != kNoValue);
}

}  // namespace dpt
