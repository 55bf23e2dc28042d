// What a seed decides: initial weights, and the orders of samples behind them, bit for bit as
// PyTorch makes them (tests/fixtures/initial_weights.json, initialisations.json,
// sampler_orders.json).
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "checkpoint/model_file.h"
#include "data/sampler.h"
#include "layers/golden.h"
#include "layers/lowered.h"

namespace dpt {
namespace {

using golden::at;
using golden::find;

int64_t integer(const Node& map, std::string_view key) {
  int64_t value = 0;
  REQUIRE(parse_scalar(at(map, key), value));
  return value;
}
bool flag(const Node& map, std::string_view key) {
  bool value = false;
  REQUIRE(parse_scalar(at(map, key), value));
  return value;
}

// An input that the layer takes: dptrain infers in_features and the like from it.
TensorDesc input_of(const Node& layer) {
  if (find(layer, "num_embeddings")) return {DType::i32, {1}};
  if (find(layer, "embed_dim")) return {DType::f32, {1, 2, integer(layer, "embed_dim")}};
  if (find(layer, "in_features")) return {DType::f32, {1, integer(layer, "in_features")}};
  for (const char* key : {"in_channels", "num_channels", "num_parameters"})
    if (find(layer, key)) {
      const int64_t channels = integer(layer, key);
      const bool sequence = at(layer, "type").text.ends_with("1d");
      return {DType::f32, sequence ? Shape{1, channels, 16} : Shape{1, channels, 16, 16}};
    }
  std::vector<int64_t> shape = {1};
  const Node& normalized = at(layer, "normalized_shape");
  for (const Node& extent : normalized.items)
    shape.push_back(static_cast<int64_t>(golden::number(extent)));
  if (normalized.items.empty()) shape.push_back(integer(layer, "normalized_shape"));
  return {DType::f32, Shape(shape)};
}

// Draws the parameters of a graph; gives the hash of their bytes, in their order.
void draw_graph(const Graph& graph, Generator& generator, Sha256& hash) {
  std::map<ValueId, std::vector<float>> drawn;  // parameters are numbered in their order
  draw_parameters(graph, generator, [&](ValueId v, int64_t first, std::span<const float> values) {
    if (first == 0) drawn[v].clear();  // by its layer, perhaps, before `init`
    drawn[v].insert(drawn[v].end(), values.begin(), values.end());
  });
  for (const auto& [v, values] : drawn) hash.update(std::span<const float>(values));
}

// Draws those of a list of {type, arguments}, which need not fit one another.
std::string draw_model(const Node& model, Generator& generator) {
  Sha256 hash;
  for (const Node& described : model.items) {
    const std::string& name = at(described, "type").text;
    Node settings = described;
    for (const char* key : {"type", "in_features", "in_channels", "num_channels", "embed_dim"})
      settings = golden::without(settings, key);
    const Choice layer = golden::choice(layer_registry(), name, settings);
    Graph graph;
    GraphBuilder g(graph);
    const ValueId x = g.input("x", input_of(described));
    static_cast<const LayerType*>(layer.what)->build(layer.settings, g, {&x, 1});
    draw_graph(graph, generator, hash);
  }
  return hash.hex();
}

void check_order(const Order& order, const Node& expected) {
  const std::vector<int64_t> wide(order.indices.begin(), order.indices.end());  // as torch has them
  CHECK(Sha256().update(std::span<const int64_t>(wide)).hex() == at(expected, "sha256").text);
}

void check_loader(const Node& c) {
  Generator global(static_cast<uint64_t>(integer(c, "seed")));
  draw_model(at(c, "model"), global);
  for (const Node& epoch : at(c, "epochs").items) {
    check_order(loader_order(integer(c, "samples"), true, global), epoch);
    if (const int64_t others = integer(c, "validation"); others > 0)
      loader_order(others, false, global);
  }
}

void check_distributed(const Node& c) {
  const std::vector<Node>& ranks = at(c, "ranks").items;
  const SampleAssignment assignment{.samples = integer(c, "samples"),
                                    .ranks = static_cast<int>(integer(c, "world_size")),
                                    .remainder = flag(c, "drop_last")
                                                     ? SampleAssignment::Remainder::drop
                                                     : SampleAssignment::Remainder::pad};
  REQUIRE(static_cast<int>(ranks.size()) == assignment.ranks);
  for (int rank = 0; rank < assignment.ranks; ++rank) {
    const Order order = distributed_order(assignment, rank, flag(c, "shuffle"),
                                          static_cast<uint64_t>(integer(c, "seed")),
                                          static_cast<uint64_t>(integer(c, "epoch")));
    const Node& expected = ranks[static_cast<size_t>(rank)];
    CHECK(static_cast<int64_t>(order.indices.size()) == integer(expected, "samples"));
    check_order(order, expected);
  }
}

}  // namespace

TEST_CASE("initial weights are PyTorch's for 29 models and their seeds") {
  const golden::Document fixture = golden::read_fixture("initial_weights");
  int checked = 0;
  for (const Node& c : at(fixture.root, "cases").items) {
    CAPTURE(c.where.line);
    Generator generator(static_cast<uint64_t>(integer(c, "seed")));
    CHECK(draw_model(at(c, "model"), generator) == at(c, "sha256").text);
    ++checked;
  }
  CHECK(checked == 58);
}

TEST_CASE("what `init` asks for is drawn as torch.nn.init draws it, after the whole model") {
  const golden::Document fixture = golden::read_fixture("initialisations");
  int checked = 0;
  for (const Node& c : at(fixture.root, "cases").items) {
    CAPTURE(c.where.line);
    const Node model{.kind = Node::Kind::map, .entries = {{{"model", {}}, at(c, "model")}}};
    ModelText text(to_yaml(model));
    std::vector<int64_t> sample = {1};
    for (const Node& extent : at(c, "sample").items)
      sample.push_back(static_cast<int64_t>(golden::number(extent)));
    const Graph graph =
        build_graph(text.spec,
                    {.input = {sample.size() == 1 ? DType::i32 : DType::f32, Shape(sample)},
                     .loss = false,
                     .differentiate = false},
                    text.diagnostics);
    REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
    Generator generator(static_cast<uint64_t>(integer(c, "seed")));
    Sha256 hash;
    draw_graph(graph, generator, hash);
    CHECK(hash.hex() == at(c, "sha256").text);
    ++checked;
  }
  CHECK(checked == 62);
}

TEST_CASE("orders of samples are PyTorch's, behind a model and on ranks") {
  const golden::Document fixture = golden::read_fixture("sampler_orders");
  int loaders = 0, permutations = 0, distributed = 0;
  for (const Node& c : at(fixture.root, "cases").items) {
    CAPTURE(c.where.line);
    const std::string& kind = at(c, "kind").text;
    if (kind == "loader") {
      check_loader(c);
      ++loaders;
    } else if (kind == "randperm") {
      check_order(reproducible_order(integer(c, "samples"), true,
                                     static_cast<uint64_t>(integer(c, "seed")), 0),
                  c);
      ++permutations;
    } else {
      check_distributed(c);
      ++distributed;
    }
  }
  CHECK(loaders == 30);
  CHECK(permutations == 8);
  CHECK(distributed == 18);
}

}  // namespace dpt
