// ONNX models as they are written. tests/onnx/exported_models.py checks with the onnx package that
// they are sound, and with onnxruntime that they compute what dptrain predicts.
#include "export/onnx.h"

#include <algorithm>

#include "export/onnx_metadata.h"
#include "export/onnx_text.h"
#include "golden_text.h"
#include "graph/operator.h"
#include "inference/trained.h"

namespace dpt {
namespace {

std::string model_text(const std::string& model, const TensorDesc& sample,
                       const std::string& loss = "mse_loss") {
  const LoadedText text(with_model(model, loss));
  const Weights weights(text.spec, sample);
  return onnx_text(onnx_model(evaluation_graph(text.spec, sample, 1), weights.list, "net"));
}

}  // namespace

TEST_CASE("an ONNX model of linear layers") {
  CHECK(model_text("[{linear: 2, name: a}, relu, {linear: {out_features: 1, bias: false}}]",
                   {DType::f32, {3}}) == R"(ir_version 8
operator set '' 17
graph net
a.weight [2, 3] float = 0.425 0.325 0.225 0.125 0.025 -0.075
a.bias [2] float = -0.175 -0.275
2.weight [1, 2] float = -0.375 -0.475
input input [batch, 3] float
output output [batch, 1] float
a/Gemm:out = Gemm(input, a.weight, a.bias) transB=1
1/Relu:out = Relu(a/Gemm:out)
output = Gemm(1/Relu:out, 2.weight) transB=1
)");
}

TEST_CASE("an ONNX model of tokens, and one that does nothing") {
  CHECK(has(model_text("[{embedding: {num_embeddings: 4, embedding_dim: 2}}]", {DType::i32, {5}}),
            "input input [batch, 5] int64\noutput output [batch, 5, 2] float\n"
            "output = Gather(0.weight, input) axis=0\n"));
  CHECK(has(model_text("[identity]", {DType::f32, {5}}), "\noutput = Identity(input)\n"));
}

TEST_CASE("ONNX models of the other layers") {
  const std::string images = model_text(
      "[{conv2d: {out_channels: 4, kernel_size: [3, 2], padding: [1, 0], stride: 2}}, "
      "batch_norm2d, {group_norm: {num_groups: 2}}, instance_norm, prelu, "
      "{avg_pool2d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true}}, "
      "{conv_transpose2d: {out_channels: 2, kernel_size: 2, stride: 2, output_padding: 1}}, "
      "{max_pool2d: {kernel_size: 2, ceil_mode: true}}, {upsample: 2}, {pad: [1, -1]}, "
      "{adaptive_avg_pool2d: [2, 3]}, {adaptive_avg_pool2d: 1}, flatten]",
      {DType::f32, {2, 12, 13}});
  const std::string sequences = model_text(
      "[{embedding: {num_embeddings: 4, embedding_dim: 4}}, {position_embedding: {num_embeddings: "
      "8}}, {residual: [layer_norm, {multihead_attention: {num_heads: 2, causal: true}}]}, gelu, "
      "{gelu: {approximate: tanh}}, {softplus: {beta: 2, threshold: 5}}, silu, relu6, elu, "
      "leaky_relu, {linear: 3}, {softmax: {dim: -1}}]",
      {DType::i32, {5}});
  const std::string others = model_text(
      "[{conv2d: {out_channels: 8, kernel_size: 3, padding: 1, padding_mode: reflect}}, "
      "{pad: {padding: [1, 2], mode: circular}}, {pixel_shuffle: 2}, {pixel_unshuffle: 2}, "
      "{pixel_shuffle: 2}, mish, hardtanh, "
      "{upsample: {size: [3, 4], mode: bilinear}}, {adaptive_max_pool2d: [2, 4]}, "
      "{adaptive_max_pool2d: 1}, {reshape: [2, 1]}, {permute: [2, 1]}, {linear: 4, name: a}, "
      "{rms_norm: , name: b}, {multiply: , from: [a, b]}, hardsigmoid, glu, "
      "{max_pool1d: 1}, {avg_pool1d: 1}, celu, softsign, logsigmoid, hardshrink, softshrink, "
      "tanhshrink, {threshold: {threshold: -1, value: 2}}]",
      {DType::f32, {2, 4, 3}});
  check_golden(images + "\n" + sequences + "\n" + others, "export/golden/onnx.txt");
}

TEST_CASE("a model that converts bytes as the run's transforms do") {
  const auto model_of = [](const std::string& transforms) {
    std::string yaml = with_model("[flatten, {linear: 1}]");
    yaml.replace(yaml.find("batch_size"), 0, "transforms: " + transforms + ", ");
    const LoadedText text(yaml);
    SampleForm form{.stored = {DType::u8, {2, 1, 1}}};
    const TensorDesc sample = input_of(form, text.spec.data.transforms);
    const Weights weights(text.spec, sample);
    const std::vector<float> values = byte_values(form, text.spec.data.transforms);
    return values.empty() ? ""
                          : onnx_text(onnx_model(evaluation_graph(text.spec, sample, 1),
                                                 weights.list, "net", {}, values));
  };
  const auto has = [](const std::string& model, const std::string& line) {
    CHECK_MESSAGE(model.find(line + "\n") != model.npos, model);
  };
  const std::string one = model_of("[{divide: 2}]");
  has(one, "input input [batch, 2, 1, 1] uint8");
  has(one, "transforms/Cast:out = Cast(input) to=7");
  has(one, "transforms/constant [256] float = 0 0.5 1 1.5 2 2.5 ...");
  has(one, "transforms/Gather:out = Gather(transforms/constant, transforms/Cast:out)");
  const std::string channels =
      model_of("[random_horizontal_flip, {normalize: {mean: [0, 1], std: [1, 2]}}]");
  has(channels, "transforms/constant [2, 1, 1] int64 = 0 256");
  has(channels, "transforms/Add:out = Add(transforms/Cast:out, transforms/constant)");
  has(channels, "transforms/constant_1 [512] float = 0 1 2 3 4 5 ...");
  has(channels, "transforms/Gather:out = Gather(transforms/constant_1, transforms/Add:out)");
}

TEST_CASE("a model says what its inputs and outputs mean") {
  const LoadedText text(with_model("[{linear: 2}]"));
  SampleForm form{.stored = {DType::f32, {3}}, .target = {DType::i32, {}}, .classes = 2};
  form.class_names = {"it's \"red\"", "gr\u00fcn"};
  form.columns = {
      .names = {"sex", "age", "color"}, .header = true, .inputs = {0, 1}, .targets = {2}};
  form.columns.encodings = {{.categories = {"f", "m"}}, {.mean = 4, .std = 2}};
  const Weights weights(text.spec, form.stored);
  const Node to_tensor{.kind = Node::Kind::scalar, .text = "to_tensor"};
  Node list{.kind = Node::Kind::list, .items = {to_tensor}}, data{.kind = Node::Kind::map};
  data.entries.push_back({.key = {.value = "transforms"}, .value = list});
  Node spec{.kind = Node::Kind::map};
  spec.entries.push_back({.key = {.value = "data"}, .value = data});
  const auto facts = onnx_metadata(form, spec);
  const std::string model = onnx_text(
      onnx_model(evaluation_graph(text.spec, form.stored, 1), weights.list, "net", facts));
  const auto has = [&](const std::string& line) {
    CHECK_MESSAGE(model.find("metadata " + line + "\n") != model.npos, model);
  };
  has(R"(names = {0: "it's \"red\"", 1: "grün"})");
  has(R"(input_columns = ["sex=f", "sex=m", "age"])");
  has(R"(target_columns = ["color"])");
  CHECK(facts.at("transforms") == "[to_tensor]\n");
  CHECK(form_from_json(facts.at("data"), "data") == form);
}

TEST_CASE("weights that are missing or have another shape are refused") {
  const LoadedText text(with_model("[{linear: 2}]"));
  const TensorDesc sample{DType::f32, {3}};
  const Graph graph = evaluation_graph(text.spec, sample, 1);
  Weights weights(text.spec, sample);
  const auto refusal = [&] { return data_error([&] { onnx_model(graph, weights.list, "net"); }); };
  CHECK(refusal().empty());
  weights.list[1].name = "module.0.bias";  // as DataParallel names it
  CHECK(refusal().empty());
  weights.list[1].name = "_orig_mod.module.0.bias";  // with torch.compile around it
  CHECK(refusal().empty());
  weights.list[1].desc.shape = {1};
  CHECK(refusal() == "the weights' '0.bias' is f32[1], but the model's is f32[2]");
  weights.list.pop_back();
  CHECK(refusal() == "the weights have no '0.bias'; give those of this model");
}

TEST_CASE("every operator of an evaluation has a translation to ONNX") {
  const std::vector<std::string_view> known = onnx_operators();
  std::string missing;
  for (const OperatorType& op : operator_table())
    if (!op.is(Trait::backward) && op.gradient && std::ranges::find(known, op.name) == known.end())
      missing += std::string(op.name) + "\n";
  // Losses; what only training, reduced precision or several devices need; what passes of a back
  // end make of other operators.
  CHECK(
      missing ==
      "dropout\nmax_pool_bytes\ncosine_embedding_loss\ncross_entropy\nctc_loss\ndice_loss\n"
      "gaussian_nll_loss\nmulti_margin_loss\nnll_loss\nmse_loss\nl1_loss\nsmooth_l1_loss\n"
      "huber_loss\nbce_loss\nbce_with_logits_loss\nkl_div\npoisson_nll_loss\n"
      "soft_margin_loss\nmultilabel_soft_margin_loss\nhinge_embedding_loss\n"
      "sigmoid_focal_loss\nmargin_ranking_loss\ntriplet_margin_loss\ncast\nscale_gradient\nscale\n"
      "copy\nmasked\nmasked_channels\nmatmul\n");
}

}  // namespace dpt
